package engine

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// RulePlaceholder refuses text that fills a field of a suggested call without content.
const RulePlaceholder = "placeholder"

// IsPlaceholder reports whether a text is only a placeholder: dots, also in brackets, a
// phrase in angle brackets that is not a URL, or a word such as TODO. A text that merely
// contains one is not.
func IsPlaceholder(text string) bool {
	if isDots(text) {
		return true
	}
	text = strings.Trim(dropInvisible(text), " \t\r\n\"'`*_")
	switch strings.ToLower(strings.TrimRight(text, ".:…")) {
	case "todo", "tbd", "fixme", "placeholder":
		return true
	}
	inner, opened := strings.CutPrefix(text, "<")
	inner, closed := strings.CutSuffix(inner, ">")
	return opened && closed && !strings.ContainsAny(inner, "<>\n") && !strings.Contains(inner, "://")
}

// isDots reports whether a text has only dots, colons and invisible characters, apart from
// white space, quotes, brackets and Markdown marks.
func isDots(text string) bool {
	if isBlank(text) {
		return false
	}
	rest := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("\"'`*_()[]{}", r) {
			return -1
		}
		return r
	}, text)
	return rest != "" && strings.Trim(dropInvisible(rest), ".…:") == ""
}

// dropInvisible returns the text without invisible characters, such as zero-width spaces.
func dropInvisible(text string) string {
	const blankBraille = '\u2800'
	return strings.Map(func(r rune) rune {
		if r == blankBraille || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return r
	}, text)
}

// trimToWords returns the words of a text, separated by single spaces, without invisible
// characters and enclosing quotes.
func trimToWords(text string) string {
	return strings.Trim(strings.Join(strings.Fields(dropInvisible(text)), " "), "\"'`")
}

// minPromptWords is the number of words from which a prompt that is sent back counts as a
// placeholder. The output of a step may be as short as its prompt.
const minPromptWords = 3

// checkPlaceholders refuses a command that hands in placeholders, or the texts of its
// position, in place of content. vars are the variables of the run: a value that does not
// change them is no placeholder, so that a context can be sent back.
func checkPlaceholders(pos *Position, c *Continue, vars map[string]any) *Refusal {
	p := placeholderCheck{accepted: map[string][]any{}}
	for _, text := range []string{
		describeOutput, describeNotes, describeOption, describeBranch, describeNote, describeVariable,
		DescribeSame, DescribeOutputArgument, DescribeNotesArgument, DescribeContextArgument,
	} {
		p.addTexts(text)
	}
	for _, f := range pos.Fields() {
		p.addTexts(f.Description)
	}
	p.addTexts(pos.Criteria...)
	for _, text := range []string{pos.Prompt, pos.Message} {
		if len(strings.Fields(text)) >= minPromptWords {
			p.addTexts(text)
		}
	}
	for _, n := range append(slices.Clip(pos.Needs), pos.Sets...) {
		p.accepted["context."+n.Variable] = n.Compared
	}
	p.checkText("output", c.Output)
	p.checkText("notes", c.Notes)
	if c.Skip != nil {
		p.checkText("skip.reason", c.Skip.Reason)
	}
	if c.Answer != nil && !c.Person {
		p.checkText("answer.note", c.Answer.Note)
	}
	p.checkMembers("context", c.Context, vars)
	return p.refusal
}

// placeholderCheck finds the first placeholder of a command.
type placeholderCheck struct {
	// texts are the descriptions, criteria and messages that a caller could send back.
	texts []string
	// accepted are the values that the definition tests a variable for, by the field of
	// each variable that the position asks for.
	accepted map[string][]any
	refusal  *Refusal
}

func (p *placeholderCheck) addTexts(texts ...string) {
	for _, text := range texts {
		if text = trimToWords(text); text != "" {
			p.texts = append(p.texts, text)
		}
	}
}

// isText reports whether a text repeats one of the texts.
func (p *placeholderCheck) isText(text string) bool {
	return slices.Contains(p.texts, trimToWords(text))
}

func (p *placeholderCheck) checkText(name, text string) {
	if text != "" && (IsPlaceholder(text) || p.isText(text)) {
		p.refuse(name, text)
	}
}

func (p *placeholderCheck) refuse(name, text string) {
	if p.refusal == nil {
		p.refusal = &Refusal{Rule: RulePlaceholder, Given: map[string]any{name: text}, Message: name + " is a placeholder: replace it with the actual content"}
	}
}

func (p *placeholderCheck) checkMembers(name string, members map[string]any, old any) {
	before, _ := old.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(members)) {
		p.checkValue(name+"."+key, members[key], before[key])
	}
}

// checkValue checks the value of a variable or of its member; old is its current value. If
// the position does not ask for it, a word such as "todo" is data of the user.
func (p *placeholderCheck) checkValue(name string, v, old any) {
	switch v := v.(type) {
	case string:
		accepted, asked := p.accepted[name]
		isSame := func(other any) bool { return jsontext.Equal(v, other) }
		switch {
		case v == "" || slices.ContainsFunc(append(slices.Clip(accepted), old), isSame):
		case asked:
			p.checkText(name, v)
		case isEllipsis(v) || p.isText(v):
			p.refuse(name, v)
		}
	case []any:
		if jsontext.Equal(v, old) {
			return
		}
		for _, item := range v {
			p.checkValue(name, item, nil)
		}
	case map[string]any:
		p.checkMembers(name, v, old)
	}
}

// isEllipsis reports whether a text is an ellipsis, apart from invisible characters and
// quotes. A path such as ".." is not.
func isEllipsis(text string) bool {
	text = trimToWords(text)
	return text == "..." || text == "…"
}
