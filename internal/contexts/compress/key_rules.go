package compress

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
)

// keyRulesJSON has the rules in their order; the first match decides. Most rules for the last
// word come before rules for the first word, since the last word of a key is its kind.
//
//go:embed key_rules.json
var keyRulesJSON []byte

// keyPosition is the part of a key that a rule matches.
type keyPosition string

const (
	// wholeKey matches if the key consists of the words.
	wholeKey keyPosition = "whole"
	// keyStart matches if the key begins with the words.
	keyStart keyPosition = "start"
	// keyEnd matches if the key ends with the words. The last word of an English compound is
	// its kind: a userGoalTimestamp is a time, not a goal.
	keyEnd keyPosition = "end"
	// anyWords matches if the key contains the words.
	anyWords keyPosition = "any"
)

// keyRule is one row of the key table. It matches whole words only: "catalog" and "login"
// are not logs, "template" and "temperature" are not temporary.
type keyRule struct {
	At keyPosition
	// Words are phrases, whose words are separated by spaces. They include each of the Firsts
	// with each of the Seconds.
	Words, Firsts, Seconds []string
	Layer                  Layer
	Why                    string
}

// keyTable returns the rules of a file in their order.
func keyTable(text []byte) ([]keyRule, error) {
	var groups []struct {
		About string
		Rules []keyRule
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&groups); err != nil {
		return nil, err
	}
	var table []keyRule
	for _, group := range groups {
		table = append(table, group.Rules...)
	}
	return table, nil
}

// compiledRule is a row of the key table with its phrases as a set.
type compiledRule struct {
	keyRule
	phrases map[string]bool
	// longest is the number of words of the longest phrase.
	longest int
}

func compileKeyTable() []compiledRule {
	table, _ := keyTable(keyRulesJSON) // A test decodes the file, which is a part of the program.
	out := make([]compiledRule, 0, len(table))
	for _, rule := range table {
		for _, first := range rule.Firsts {
			for _, second := range rule.Seconds {
				rule.Words = append(rule.Words, first+" "+second)
			}
		}
		c := compiledRule{keyRule: rule, phrases: map[string]bool{}}
		for _, phrase := range rule.Words {
			c.phrases[phrase] = true
			c.longest = max(c.longest, 1+strings.Count(phrase, " "))
		}
		out = append(out, c)
	}
	return out
}

// keyForm is a key as a text of its words, separated by spaces.
type keyForm struct {
	text string
	// starts are the indexes of the words, plus the index after the last word and its
	// separator.
	starts []int
}

func formOf(words []string) keyForm {
	f := keyForm{text: strings.Join(words, " "), starts: make([]int, 0, len(words)+1)}
	at := 0
	for _, word := range words {
		f.starts = append(f.starts, at)
		at += len(word) + 1
	}
	f.starts = append(f.starts, at)
	return f
}

// joinWords returns the words from the first index up to, but not including, the second.
func (f keyForm) joinWords(from, to int) string { return f.text[f.starts[from] : f.starts[to]-1] }

// findPhrase returns the longest phrase of the rule that the key contains at the rule's
// position.
func (r compiledRule) findPhrase(f keyForm) (string, bool) {
	words := len(f.starts) - 1
	if r.At == wholeKey {
		return f.text, r.phrases[f.text]
	}
	for n := min(r.longest, words); n > 0; n-- {
		from, to := 0, 0
		switch r.At {
		case keyEnd:
			from, to = words-n, words-n
		case anyWords:
			to = words - n
		}
		for ; from <= to; from++ {
			if part := f.joinWords(from, from+n); r.phrases[part] {
				return part, true
			}
		}
	}
	return "", false
}

// describePosition returns the verb for a verdict, such as "begins with".
func (p keyPosition) describePosition() string {
	switch p {
	case keyStart:
		return "begins with"
	case keyEnd:
		return "ends with"
	case anyWords:
		return "has"
	default:
		return "is"
	}
}
