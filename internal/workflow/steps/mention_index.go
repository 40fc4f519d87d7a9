package steps

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// neverMentioned is the order returned for names that no text mentions.
const neverMentioned = 1 << 30

// orderOf returns the position of a top-level step in the order in which texts are read.
// Texts of the whole workflow have the position zero, and the steps of a loop's body have
// the position of the loop.
func orderOf(step int) int { return step + 1 }

// agentText is a text for the agent in lower case, with its order.
type agentText struct {
	order int
	words string
}

// mentionIndex finds the first text that mentions a name.
type mentionIndex struct {
	texts []agentText
	cache map[string]int
	// wordIndex is an index of the texts, built if there are many names.
	wordIndex map[string]int
}

// manyNames is the number of names that are searched without an index.
const manyNames = 64

// newMentions indexes the texts of a workflow. A name in {{...}} is a read of a variable
// and does not count as a mention.
func newMentions(w *Workflow) *mentionIndex {
	m := &mentionIndex{cache: map[string]int{}}
	for _, list := range [][]string{{w.Name, w.Description}, w.Preconditions, w.ClarificationPrompts, w.MetaGuidance} {
		m.addTexts(0, list...)
	}
	m.addFunctions(0, w.Functions)
	at := map[string]int{}
	for i := range w.Steps {
		if loop := w.Steps[i].Loop; loop != nil && loop.BodyRef != "" {
			at[loop.BodyRef] = orderOf(i)
		}
	}
	for i := range w.Steps {
		order, ok := at[w.Steps[i].ID]
		if !ok {
			order = orderOf(i)
		}
		m.addStep(order, &w.Steps[i])
		if loop := w.Steps[i].Loop; loop != nil && loop.BodyRef == "" {
			for j := range loop.Body {
				m.addStep(order, &loop.Body[j])
			}
		}
	}
	return m
}

// addStep adds the texts of a step.
func (m *mentionIndex) addStep(order int, step *Step) {
	m.addTexts(order, step.Title, step.Prompt, step.AgentRole)
	m.addTexts(order, step.Guidance...)
	m.addFunctions(order, step.Functions)
}

// addFunctions adds the texts of definitions.
func (m *mentionIndex) addFunctions(order int, functions []Function) {
	for i := range functions {
		m.addTexts(order, functions[i].Definition)
	}
}

// addTexts adds texts, with their placeholders removed.
func (m *mentionIndex) addTexts(order int, texts ...string) {
	for _, words := range texts {
		if strings.Contains(words, "{{") {
			var b strings.Builder
			for _, part := range template.Parse(words) {
				if !part.Expr || part.Path == nil {
					b.WriteString(part.Text)
				} else {
					b.WriteByte(' ')
				}
			}
			words = b.String()
		}
		m.texts = append(m.texts, agentText{order: order, words: strings.ToLower(words)})
	}
}

// firstMention returns the order of the first text that contains the name as a word, or
// neverMentioned. It ignores case: a reader understands "Status" as the variable status.
func (m *mentionIndex) firstMention(name string) int {
	order, ok := m.cache[name]
	if ok {
		return order
	}
	order = m.searchWord(strings.ToLower(name))
	m.cache[name] = order
	return order
}

// firstMentionOf returns the order of the first text that mentions a path or its variable.
func (m *mentionIndex) firstMentionOf(path string) int {
	return min(m.firstMention(path), m.firstMention(expr.Root(path)))
}

// searchWord searches a word in the texts, or in their index.
func (m *mentionIndex) searchWord(word string) int {
	order := neverMentioned
	if len(m.cache) > manyNames && !strings.ContainsFunc(word, func(r rune) bool { return !isWordRune(r) }) {
		if m.wordIndex == nil {
			m.buildIndex()
		}
		if found, ok := m.wordIndex[word]; ok {
			order = found
		}
		return order
	}
	for i := range m.texts {
		if m.texts[i].order < order && hasWord(m.texts[i].words, word) {
			order = m.texts[i].order
		}
	}
	return order
}

// buildIndex records the first order of every word.
func (m *mentionIndex) buildIndex() {
	m.wordIndex = map[string]int{}
	for i := range m.texts {
		order := m.texts[i].order
		for _, word := range strings.FieldsFunc(m.texts[i].words, func(r rune) bool { return !isWordRune(r) }) {
			if known, ok := m.wordIndex[word]; !ok || order < known {
				m.wordIndex[word] = order
			}
		}
	}
}

// hasWord reports whether the text contains the word as a whole word.
func hasWord(words, word string) bool {
	if word == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(words[from:], word)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(word)
		before, _ := utf8.DecodeLastRuneInString(words[:begin])
		after, _ := utf8.DecodeRuneInString(words[end:])
		if !isWordRune(before) && !isWordRune(after) {
			return true
		}
		from = begin + 1
	}
}

// isWordRune reports whether a character is part of a word.
func isWordRune(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// runeCount returns the number of characters.
func runeCount(text string) int { return utf8.RuneCountInString(text) }
