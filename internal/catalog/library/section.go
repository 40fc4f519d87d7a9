package library

import (
	"strings"
	"unicode"
)

// Headings returns the headings of a Markdown text in order, without their marks.
func Headings(text string) []string {
	var list []string
	for _, h := range findHeadings(text) {
		list = append(list, h.title)
	}
	return list
}

// Section returns a section of a Markdown text: its heading and the text up to the next
// heading of the same or a higher level. The heading is found regardless of case and
// punctuation. If no heading equals name, Section uses a heading that contains its words,
// if there is only one.
func Section(text, name string) (string, bool) {
	wanted := plainWords(name)
	if wanted == "" {
		return "", false
	}
	all := findHeadings(text)
	found, partial := -1, []int{}
	for i, h := range all {
		have := plainWords(h.title)
		if have == wanted {
			found = i
			break
		}
		if strings.Contains(" "+have+" ", " "+wanted+" ") {
			partial = append(partial, i)
		}
	}
	if found < 0 && len(partial) == 1 {
		found = partial[0]
	}
	if found < 0 {
		return "", false
	}
	end := len(text)
	for _, h := range all[found+1:] {
		if h.level <= all[found].level {
			end = h.at
			break
		}
	}
	return strings.TrimRight(text[all[found].at:end], "\n") + "\n", true
}

// heading is a line such as "## Plan".
type heading struct {
	at, level int
	title     string
}

// findHeadings returns the Markdown headings that start with number signs, except those in
// code.
func findHeadings(text string) []heading {
	var list []heading
	fence := ""
	at := 0
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		mark := fenceOf(bare)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
		case mark != "":
			fence = mark
		case strings.HasPrefix(line, "#"):
			title := strings.TrimLeft(bare, "#")
			level := len(bare) - len(title)
			const deepest = 6
			if level <= deepest && (title == "" || title[0] == ' ' || title[0] == '\t') {
				list = append(list, heading{at, level, strings.TrimSpace(strings.TrimRight(title, "# "))})
			}
		}
		at += len(line)
	}
	return list
}

// fenceOf returns the mark that starts or ends a block of code, or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		const shortest = 3
		if n := len(line) - len(rest); n >= shortest && !strings.Contains(rest, mark) {
			return line[:n]
		}
	}
	return ""
}

// plainWords returns a text in lower case with one space between its words.
func plainWords(text string) string { return strings.Join(splitWords(text), " ") }

// splitWords splits a text into words of letters and digits in lower case. Apostrophes are
// removed.
func splitWords(text string) []string {
	text = strings.NewReplacer("'", "", "\u2019", "").Replace(strings.ToLower(text))
	return strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}
