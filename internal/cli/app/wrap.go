package app

import "strings"

// Wrap breaks a text at spaces into lines of at most n columns. A longer word has its own
// line. Wrap keeps line breaks and indentation, indents the continuation of a list item,
// and does not change fenced code.
func Wrap(text string, n int) []string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(strings.TrimRight(EscapeText(text), "\n "), "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " ")
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced || TextWidth(line) <= n {
			out = append(out, line)
			continue
		}
		out = append(out, wrapLine(line, n)...)
	}
	return out
}

func wrapLine(line string, n int) []string {
	lead := linePrefix(line)
	hang := strings.Repeat(" ", TextWidth(lead))
	if len(hang) > n/2 {
		hang = ""
	}
	var out []string
	current, empty := lead, true
	for word := range strings.FieldsSeq(line[len(lead):]) {
		switch {
		case empty:
			current += word
		case TextWidth(current)+1+TextWidth(word) <= n:
			current += " " + word
		default:
			out = append(out, current)
			current = hang + word
		}
		empty = false
	}
	return append(out, current)
}

// linePrefix returns the indentation of a line, with the marker of a list item.
func linePrefix(line string) string {
	rest := strings.TrimLeft(line, " ")
	mark := strings.TrimLeft(rest, "0123456789")
	switch {
	case len(mark) == len(rest) && (strings.HasPrefix(mark, "- ") || strings.HasPrefix(mark, "* ") || strings.HasPrefix(mark, "+ ")),
		len(mark) < len(rest) && (strings.HasPrefix(mark, ". ") || strings.HasPrefix(mark, ") ")):
		rest = strings.TrimLeft(mark[1:], " ")
	}
	return line[:len(line)-len(rest)]
}
