package compress

import (
	"math"
	"slices"
	"strings"
	"sync"
)

// Passage is a text with a heading, split into statements: the output of a step, or an event
// of the run.
type Passage struct {
	Heading string
	// Seq is the number of the event with the text.
	Seq        int64
	Statements []Statement
	// Omitted counts the statements that ThinPassages removed.
	Omitted int
}

// Statement is a sentence, a list entry or a block of code of a passage, without the marks of
// Markdown before it.
type Statement struct {
	Text string
	// Under is the heading in the passage above the statement, if it has a cue.
	Under string
	// Like counts the removed statements with the same pattern.
	Like int
	// code reports whether the statement is a part of a block of code or of a table.
	code bool
	// fact reports whether the statement comes from the server, not from the agent.
	fact   bool
	tokens int
}

// ReadPassage splits a text into statements.
func ReadPassage(heading string, seq int64, text string) Passage {
	p := Passage{Heading: heading, Seq: seq}
	under := ""
	for i, part := range strings.Split(text, "```") {
		kind := codeText
		if i%2 == 0 {
			kind = kindOfText(part)
		} else if first, rest, ok := strings.Cut(part, "\n"); ok && !strings.Contains(first, " ") {
			part = rest // the language of the block
		}
		for _, s := range splitSpans(part, kind) {
			if kind == proseText {
				if h, ok := markdownHeading(part[s.from:s.to]); ok {
					under = ""
					if hasCue(h) {
						under = h
					}
					continue
				}
			}
			if text := trimMarkdown(part[s.from:s.to]); text != "" {
				p.Statements = append(p.Statements, Statement{Text: text, Under: under, code: kind == codeText || text[0] == '|', tokens: Estimate(text) + Estimate(under)})
			}
		}
	}
	return p
}

// NewFact returns a statement of the server, such as a refusal.
func NewFact(text string) Statement { return Statement{Text: text, fact: true, tokens: Estimate(text)} }

// markdownHeading returns the text of a line that is a heading.
func markdownHeading(part string) (heading string, ok bool) {
	part = strings.TrimSpace(part)
	rest := strings.TrimLeft(part, "#")
	heading, spaced := strings.CutPrefix(rest, " ")
	depth := len(part) - len(rest)
	return strings.TrimRight(strings.Trim(heading, " *"), ":"), spaced && depth >= 1 && depth <= 6 && !strings.Contains(part, "\n")
}

// trimMarkdown returns a part of a text with single spaces and without the marks before it,
// or "" for a part without a letter or digit.
func trimMarkdown(part string) string {
	text := strings.Join(strings.Fields(part), " ")
	for {
		mark, rest, ok := strings.Cut(text, " ")
		if !ok || strings.Trim(mark, "-*+>") != "" && !isListNumber(mark) {
			break
		}
		text = rest
	}
	if !strings.ContainsFunc(text, func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= 0x80
	}) || isListNumber(text) {
		return ""
	}
	return text
}

// isListNumber reports whether a word is the number of a list entry, such as "2." or "3)".
func isListNumber(word string) bool {
	rest := strings.TrimLeft(word, "0123456789")
	return len(rest) < len(word) && len(word) < 5 && (rest == "." || rest == ")")
}

// The ranks of a statement. The rank of a statement with the pattern of a later one is lower
// by foldedRanks.
const (
	foldedRanks = 4
	codeRank    = iota + foldedRanks // code and tables
	plainRank                        // other sentences
	topicRank                        // the first sentence of a passage
	workRank                         // changes, errors, workarounds, remaining work
	keyRank                          // causes, demands, open questions, refusals, evidence
	// decisionRank is keyRank with decisionBits.
	decisionRank
	decisionBits = 3
)

// cueRank is the rank of a word, or 0. first is set for the first word of a pair that has a
// rank.
type cueRank struct {
	rank  int
	first bool
}

// cueRanks returns the ranks of words, and of pairs of words, in lower case.
var cueRanks = sync.OnceValue(func() map[string]cueRank {
	ranks := map[string]cueRank{}
	for rank, words := range map[int]string{
		decisionRank: `decision: decided chose chosen opted settled agreed picked went_with we_will`,
		keyRank: `decision decisions rejected discarded vetoed ruled_out disproved disproves
			cause causes caused culprit due_to stems_from stem_from comes_from came_from turned_out turns_out because broke happens_since
			insists insisted demands demanded forbade forbids forbidden requirement must_not
			user customer customers maintainer maintainers reviewer reviewers owner operators stakeholder stakeholders legal security_requires
			? unclear undecided not_decided clarified not_know pending tbd open_question open_questions open
			refused denied answered
			evidence verified confirmed confirms measured proves proved proven reproduced exit_code passed bisect log_shows profile benchmark`,
		workRank: `instead dropped must never has_to have_to only whether
			error errors failed fails failure panic crash crashes timeout broken
			workaround temporary temporarily for_now until time_being meantime get_by disabled avoids hides bridges
			next todo to_do remaining remains not_done not_yet left follow-up later missing
			renamed moved replaced deleted removed added split bumped changed switched now new default`,
	} {
		for _, word := range strings.Fields(words) {
			first, second, pair := strings.Cut(word, "_")
			if pair {
				ranks[first] = cueRank{ranks[first].rank, true}
				word = first + " " + second
			}
			ranks[word] = cueRank{rank, ranks[word].first}
		}
	}
	return ranks
})

// hasCue reports whether a text has a cue.
func hasCue(text string) bool {
	return slices.ContainsFunc(words(text), func(w cueWord) bool { return cueRanks()[w.text].rank > 0 })
}

// cueWord is a word of a statement in lower case. isName is set for names and numbers.
type cueWord struct {
	text   string
	isName bool
}

// words returns the words of a text, and a question mark at its end. A label among the first
// two words, such as "Decision:", has its colon if it is a cue: it says more than the word in a
// sentence.
func words(text string) (list []cueWord) {
	for field := range strings.FieldsSeq(text) {
		word := trimMarks(field)
		if word == "" {
			continue
		}
		kind := kindOf(word)
		word = strings.ToLower(word)
		if len(list) < 2 && strings.HasSuffix(strings.TrimRight(field, "*_"), ":") && cueRanks()[word+":"].rank > 0 {
			word += ":"
		}
		list = append(list, cueWord{word, kind != wordTerm && kind != smallTerm})
	}
	if strings.HasSuffix(text, "?") {
		list = append(list, cueWord{text: "?"})
	}
	return list
}

// wordCounts counts statements, and the occurrences of words in them.
type wordCounts struct {
	frequency map[string]int
	count     int
}

func countWords(statements [][]cueWord) *wordCounts {
	p := &wordCounts{frequency: map[string]int{}, count: len(statements)}
	for _, list := range statements {
		for _, w := range list {
			if !w.isName {
				p.frequency[w.text]++
			}
		}
	}
	return p
}

// rankStatement returns the rank of a statement with the given words, and its value among those of the same rank: rare
// cues and names have a higher value.
func (p *wordCounts) rankStatement(s Statement, list []cueWord) (rank int, value float64) {
	if s.fact {
		return keyRank, math.Log2(float64(p.count + 5))
	}
	rank = plainRank
	names, before, known := 0, "", cueRanks()
	cue := func(r, frequency int) {
		if r < rank {
			return
		}
		bits := math.Log2(float64(p.count+5) / float64(frequency+5))
		if r == decisionRank {
			r, bits = keyRank, bits+decisionBits
		}
		if r > rank {
			rank, value = r, 0
		}
		value = max(value, bits)
	}
	for _, w := range list {
		if w.isName {
			names++
		}
		one := known[w.text]
		if one.rank > 0 {
			cue(one.rank, p.frequency[w.text])
		}
		if before != "" {
			cue(known[before+" "+w.text].rank, min(p.frequency[w.text], p.frequency[before]))
		}
		before = ""
		if one.first {
			before = w.text
		}
	}
	for _, w := range words(s.Under) {
		cue(known[w.text].rank, p.count)
	}
	if s.code {
		rank = codeRank
	}
	return rank, value + 2*float64(min(names, 2))
}

// patternOf returns the words of a statement that many statements contain, with a mark in
// place of the others, which differ between statements with the same pattern. If less than
// half of the words of the statement are such words, the pattern is the text of the
// statement.
func (p *wordCounts) patternOf(s Statement, list []cueWord) string {
	var b strings.Builder
	same, gap := 0, false
	least := max(minLike, p.count/50)
	for _, w := range list {
		if w.isName || p.frequency[w.text] < least {
			if !gap {
				b.WriteString(" #")
			}
			gap = true
			continue
		}
		gap = false
		same++
		b.WriteString(" " + w.text)
	}
	if 2*same < len(list) {
		return s.Text
	}
	return b.String()
}

// minLike is the number of statements with the same pattern from which they are folded.
const minLike = 4
