package steps

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/definition/template"
)

// never is the order of what no text mentions.
const never = 1 << 30

// orderOf is the order of a top-level step among the texts; what is said of the
// whole workflow comes first, at zero. A body comes with its loop.
func orderOf(step int) int { return step + 1 }

// text is something that the agent reads, in small letters, and when.
type text struct {
	order int
	words string
}

// mentions knows when the agent first reads a name.
type mentions struct {
	texts []text
	first map[string]int
	// words is an index of the texts, made when many names are asked for.
	words map[string]int
}

// manyNames is how many names are looked for by reading all texts.
const manyNames = 64

// newMentions collects the texts of a workflow. What stands in {{...}} reads a
// variable and does not count as a mention.
func newMentions(w *Workflow) *mentions {
	m := &mentions{first: map[string]int{}}
	for _, list := range [][]string{{w.Name, w.Description}, w.Preconditions, w.ClarificationPrompts, w.MetaGuidance} {
		m.add(0, list...)
	}
	m.functions(0, w.Functions)
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
		m.step(order, &w.Steps[i])
		if loop := w.Steps[i].Loop; loop != nil && loop.BodyRef == "" {
			for j := range loop.Body {
				m.step(order, &loop.Body[j])
			}
		}
	}
	return m
}

// step adds what the agent reads of a step.
func (m *mentions) step(order int, step *Step) {
	m.add(order, step.Title, step.Prompt, step.AgentRole)
	m.add(order, step.Guidance...)
	m.functions(order, step.Functions)
}

// functions adds the texts of definitions.
func (m *mentions) functions(order int, functions []Function) {
	for i := range functions {
		m.add(order, functions[i].Definition)
	}
}

// add adds texts without their placeholders.
func (m *mentions) add(order int, texts ...string) {
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
		m.texts = append(m.texts, text{order: order, words: strings.ToLower(words)})
	}
}

// order gives the order of the first text that has the name as a word, or never.
// Case does not count: a person reads "Status" as the variable status.
func (m *mentions) order(name string) int {
	order, ok := m.first[name]
	if ok {
		return order
	}
	order = m.search(strings.ToLower(name))
	m.first[name] = order
	return order
}

// search looks for a word in the texts, or in their index.
func (m *mentions) search(word string) int {
	order := never
	if len(m.first) > manyNames && !strings.ContainsFunc(word, func(r rune) bool { return !isWordRune(r) }) {
		if m.words == nil {
			m.index()
		}
		if found, ok := m.words[word]; ok {
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

// index notes the first order of every word.
func (m *mentions) index() {
	m.words = map[string]int{}
	for i := range m.texts {
		order := m.texts[i].order
		for _, word := range strings.FieldsFunc(m.texts[i].words, func(r rune) bool { return !isWordRune(r) }) {
			if known, ok := m.words[word]; !ok || order < known {
				m.words[word] = order
			}
		}
	}
}

// hasWord says whether the text has the word, not as a part of another.
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

// isWordRune says whether a character continues a word.
func isWordRune(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// runes counts characters.
func runes(text string) int { return utf8.RuneCountInString(text) }
