package window

import (
	"fmt"
	"slices"
	"strings"
)

// Hints are what is known of a context besides itself. The zero value is
// nothing.
type Hints struct {
	// Marks are keys that an agent has called critical.
	Marks []string
	// Rules are the contextRules of the definition.
	Rules Rules
	// Variables are those that the definition's conditions, loops and
	// templates read: without them the run cannot go on.
	Variables []string
}

// Classifier tells the layer of items. It never changes; it is safe for
// concurrent use. What decides, in this order:
//
//  1. the engine's own keys, which begin with an underscore: critical;
//  2. a mark by the agent: critical;
//  3. the definition's contextRules, the first that matches;
//  4. a variable that the definition reads: critical;
//  5. the table of keys, by whole words at the key's beginning or end; an
//     ephemeral name with an error, a decision or a demand in it is useful;
//  6. the content: errors and whereabouts are important, decisions and
//     demands critical, moments ephemeral;
//  7. the form of the name: what was done, and what answers a question, is
//     important;
//  8. else it is useful.
type Classifier struct {
	hints   Hints
	keys    []compiledRule
	content contentRules
}

// NewClassifier makes a classifier for a run or a context.
func NewClassifier(hints Hints) *Classifier {
	return &Classifier{hints: hints, keys: compileKeyTable(), content: compileContentRules()}
}

// With gives a classifier with other hints that shares the tables of this one.
func (c *Classifier) With(hints Hints) *Classifier {
	return &Classifier{hints: hints, keys: c.keys, content: c.content}
}

// Classify tells the layer of one item, and why.
func (c *Classifier) Classify(key string, value []byte) Verdict {
	if v, ok := c.told(key); ok {
		return v
	}
	if v, ok := c.byKey(key); ok {
		if v.Layer == Ephemeral {
			return c.rescue(v, value)
		}
		return v
	}
	v := c.byContent(value)
	if v.Layer != Useful {
		return v
	}
	if formed, ok := c.byForm(key, value); ok {
		return formed
	}
	return v
}

// told is what somebody has said of the key.
func (c *Classifier) told(key string) (Verdict, bool) {
	if strings.HasPrefix(key, "_") {
		return Verdict{Critical, "belongs to the engine", FromEngine}, true
	}
	if slices.Contains(c.hints.Marks, key) {
		return Verdict{Critical, "marked critical by the agent", FromMark}, true
	}
	if rule, pattern, ok := c.hints.Rules.find(key); ok {
		why := fmt.Sprintf("the workflow's contextRules say so of %q", pattern)
		if rule.Why != "" {
			why += ": " + rule.Why
		}
		return Verdict{rule.Layer, why, FromHint}, true
	}
	if slices.Contains(c.hints.Variables, key) {
		return Verdict{Critical, "the workflow's conditions, loops or texts read it", FromVariable}, true
	}
	return Verdict{}, false
}

func (c *Classifier) byKey(key string) (Verdict, bool) {
	words := keyWords(key)
	if len(words) == 0 {
		return Verdict{}, false
	}
	form := formOf(words)
	for _, rule := range c.keys {
		if phrase, ok := rule.find(form); ok {
			return Verdict{rule.layer, fmt.Sprintf("the name %s %q: %s", rule.at.says(), phrase, rule.why), FromKey}, true
		}
	}
	return Verdict{}, false
}

// rescue keeps what would be dropped by its name if its content says that it
// must not be.
func (c *Classifier) rescue(v Verdict, value []byte) Verdict {
	switch c.content.look(value) {
	case failure:
		return Verdict{Useful, v.Why + "; kept, as it tells of an error", FromContent}
	case decision, demand:
		return Verdict{Useful, v.Why + "; kept, as it tells of a decision or a demand", FromContent}
	default:
		return v
	}
}

func (c *Classifier) byContent(value []byte) Verdict {
	switch c.content.look(value) {
	case moment:
		return Verdict{Ephemeral, "the value is a time", FromContent}
	case failure:
		return Verdict{Important, "the value tells of an error", FromContent}
	case decision:
		return Verdict{Critical, "the value tells of a decision", FromContent}
	case demand:
		return Verdict{Critical, "the value tells what somebody demands", FromContent}
	case locator:
		return Verdict{Important, "the value says where or which something is", FromContent}
	case longLog:
		return Verdict{Useful, "a long log", FromContent}
	case longText:
		return Verdict{Useful, longWhy(value), FromContent}
	default:
		return Verdict{Useful, "nothing is known of it", FromDefault}
	}
}

// longWhy says what a long value is.
func longWhy(value []byte) string {
	switch {
	case len(value) > 0 && value[0] == '[':
		return "a long list"
	case len(value) > 0 && value[0] == '{':
		return "a large object"
	default:
		return "a long text"
	}
}
