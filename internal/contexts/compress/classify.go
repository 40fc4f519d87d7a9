package compress

import (
	"fmt"
	"slices"
	"strings"
)

// Hints are facts about a context that only the caller knows. The zero value has no hints.
type Hints struct {
	// Marks are the keys that an agent marked critical.
	Marks []string
	// Rules are the contextRules of the definition.
	Rules Rules
	// Variables are the names that the definition's conditions, loops and templates read.
	// The run cannot continue without them.
	Variables []string
}

// Classifier assigns layers to items. It is immutable and safe for concurrent use. The
// first rule that matches decides:
//
//  1. a key of the engine, which begins with an underscore: critical;
//  2. a key that the agent marked: critical;
//  3. the definition's contextRules;
//  4. a variable that the definition reads: critical;
//  5. the table of keys, by whole words of the key; an
//     ephemeral name whose value has an error, a decision or a demand is useful;
//  6. the content: errors, locations and ids are important, decisions and demands
//     critical, times ephemeral;
//  7. the form of the name: completed work and answers are important, answers
//     about a stakeholder critical, dates ephemeral;
//  8. otherwise: useful.
type Classifier struct {
	hints   Hints
	keys    []compiledRule
	content contentRules
}

// NewClassifier returns a classifier with the hints.
func NewClassifier(hints Hints) *Classifier {
	return &Classifier{hints: hints, keys: compileKeyTable(), content: compileContentRules()}
}

// WithHints returns a classifier with other hints. It shares the tables of c.
func (c *Classifier) WithHints(hints Hints) *Classifier {
	return &Classifier{hints: hints, keys: c.keys, content: c.content}
}

// Classify returns the layer of one item and the reason.
func (c *Classifier) Classify(key string, value []byte) Verdict {
	if v, ok := c.matchDeclared(key); ok {
		return v
	}
	if v, ok := c.classifyKey(key); ok {
		if v.Layer == Ephemeral {
			return c.rescueEphemeral(v, value)
		}
		return v
	}
	v := c.classifyContent(value)
	if v.Layer != Useful {
		return v
	}
	if formed, ok := c.classifyForm(key, value); ok {
		return formed
	}
	return v
}

// matchDeclared returns the verdict that the engine, the agent or the definition declares for the
// key.
func (c *Classifier) matchDeclared(key string) (Verdict, bool) {
	if strings.HasPrefix(key, "_") {
		return Verdict{Critical, "the name begins with _, which is reserved for the server", FromEngine}, true
	}
	if slices.Contains(c.hints.Marks, key) {
		return Verdict{Critical, "marked critical by the agent", FromMark}, true
	}
	if rule, pattern, ok := c.hints.Rules.findRule(key); ok {
		why := fmt.Sprintf("the pattern %q of the workflow's contextRules matches", pattern)
		if rule.Why != "" {
			why += ": " + rule.Why
		}
		return Verdict{rule.Layer, why, FromHint}, true
	}
	if slices.Contains(c.hints.Variables, key) {
		return Verdict{Critical, "the workflow's conditions, loops or templates read the variable", FromVariable}, true
	}
	return Verdict{}, false
}

func (c *Classifier) classifyKey(key string) (Verdict, bool) {
	words := keyWords(key)
	if len(words) == 0 {
		return Verdict{}, false
	}
	form := formOf(words)
	for _, rule := range c.keys {
		if phrase, ok := rule.findPhrase(form); ok {
			return Verdict{rule.Layer, fmt.Sprintf("the name %s %q: %s", rule.At.describePosition(), phrase, rule.Why), FromKey}, true
		}
	}
	return Verdict{}, false
}

// rescueEphemeral makes an item useful whose name is ephemeral, if its content reports an error, a
// decision or a demand.
func (c *Classifier) rescueEphemeral(v Verdict, value []byte) Verdict {
	switch c.content.detectKind(value) {
	case errorContent:
		return Verdict{Useful, v.Why + "; kept because it reports an error", FromContent}
	case decisionContent, demandContent:
		return Verdict{Useful, v.Why + "; kept because it contains a decision or a demand", FromContent}
	default:
		return v
	}
}

func (c *Classifier) classifyContent(value []byte) Verdict {
	switch c.content.detectKind(value) {
	case timeContent:
		return Verdict{Ephemeral, "the value is a time", FromContent}
	case errorContent:
		return Verdict{Important, "the value reports an error", FromContent}
	case decisionContent:
		return Verdict{Critical, "the value contains a decision", FromContent}
	case demandContent:
		return Verdict{Critical, "the value contains a demand", FromContent}
	case locatorContent:
		return Verdict{Important, "the value is a path or an id", FromContent}
	case logContent:
		return Verdict{Useful, "a long log", FromContent}
	case longTextContent:
		return Verdict{Useful, describeLongValue(value), FromContent}
	default:
		return Verdict{Useful, "no rule matches", FromDefault}
	}
}

// describeLongValue returns a description of a long value.
func describeLongValue(value []byte) string {
	switch {
	case len(value) > 0 && value[0] == '[':
		return "a long list"
	case len(value) > 0 && value[0] == '{':
		return "a large object"
	default:
		return "a long text"
	}
}
