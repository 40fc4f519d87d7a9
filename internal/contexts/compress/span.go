package compress

import "strings"

// textKind determines how a text is split.
type textKind int

const (
	proseText textKind = iota
	logText
	codeText
)

// span is a part of a text. The spans of a text are adjacent and cover it.
type span struct{ from, to int }

// kindOfText returns the kind of a text by its beginning and end.
func kindOfText(text string) textKind {
	look := text
	if len(look) > maxRead {
		look = look[:maxRead/2] + look[len(look)-maxRead/2:]
	}
	switch {
	case logLines(look) > 0.5:
		return logText
	case looksLikeCode(look):
		return codeText
	default:
		return proseText
	}
}

// splitSpans splits a text: prose into sentences, a log into lines with stack traces as one part,
// code into blocks.
func splitSpans(text string, kind textKind) []span {
	switch kind {
	case logText:
		return splitLog(text)
	case codeText:
		return splitCode(text)
	default:
		return splitProse(text)
	}
}

// lineSpans returns the spans of the lines, including their line ends.
func lineSpans(text string) []span {
	var out []span
	for from := 0; from < len(text); {
		to := len(text)
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			to = from + i + 1
		}
		out = append(out, span{from, to})
		from = to
	}
	return out
}

// maxTrace bounds the lines of a stack trace that is one part.
const maxTrace = 60

// splitLog splits a log into lines; indented lines after an error and the lines of a trace
// belong to the line above.
func splitLog(text string) []span {
	var out []span
	inTrace, length := false, 0
	for _, line := range lineSpans(text) {
		s := text[line.from:line.to]
		goesOn := !isLogLine(s) && len(out) > 0 && length < maxTrace && (inTrace || isTraceLine(s))
		if goesOn {
			out[len(out)-1].to = line.to
			inTrace = true
			length++
			continue
		}
		inTrace, length = false, 0
		out = append(out, line)
	}
	return out
}

// isTraceLine reports whether a line looks like a line of a stack trace.
func isTraceLine(line string) bool {
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		return false
	case strings.HasPrefix(trimmed, "at "), strings.HasPrefix(trimmed, "File \""), strings.HasPrefix(trimmed, "goroutine "),
		strings.HasPrefix(trimmed, "Caused by:"), strings.HasPrefix(trimmed, "Traceback "), strings.HasPrefix(trimmed, "panic: "):
		return true
	}
	return line[0] == '\t' || strings.HasPrefix(line, "    ")
}

// maxBlock bounds the lines of a block of code.
const maxBlock = 8

// splitCode splits code at empty lines and after maxBlock lines.
func splitCode(text string) []span {
	var out []span
	open, length := false, 0
	for _, line := range lineSpans(text) {
		blank := strings.TrimSpace(text[line.from:line.to]) == ""
		if len(out) > 0 && (blank || (open && length < maxBlock)) {
			out[len(out)-1].to = line.to
			open = !blank
			length++
			continue
		}
		open, length = !blank, 1
		out = append(out, line)
	}
	return out
}

// longSentence is the length after which a sentence is split at the next space.
const longSentence = 600

// splitProse splits prose into sentences and list entries.
func splitProse(text string) []span {
	var out []span
	from := 0
	end := func(to int) {
		if strings.TrimSpace(text[from:to]) == "" && len(out) > 0 {
			out[len(out)-1].to = to
		} else if to > from {
			out = append(out, span{from, to})
		}
		from = to
	}
	code := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			if i+1 >= len(text) || text[i+1] == '\n' || beginsEntry(text[i+1:]) || isTraceLine(text[from:i+1]) {
				end(i + 1)
			}
		case c == '`':
			line, _, _ := strings.Cut(text[i+1:], "\n")
			code = !code && strings.Contains(line, "`")
		case code && text[i+1] != '`': // marks in code end no sentence; the line has its end
		case c == '.' || c == '!' || c == '?':
			if to := sentenceEnd(text, i); to > 0 {
				end(to)
				i = to - 1
			}
		case c == ' ' && i-from > longSentence:
			end(i + 1)
		}
	}
	end(len(text))
	return out
}

// longestLabel bounds the label before a colon at the beginning of a line.
const longestLabel = 32

// beginsEntry reports whether a line begins a list entry, a heading, a table row or another
// separate part of a text.
func beginsEntry(line string) bool {
	trimmed := strings.TrimLeft(line, " \t")
	if trimmed == "" {
		return true
	}
	switch c := trimmed[0]; {
	case c == '-' || c == '*' || c == '+' || c == '#' || c == '|' || c == '>' || c == '[':
		return true
	case isDigit(c):
		rest := strings.TrimLeft(trimmed, "0123456789")
		return rest != "" && (rest[0] == '.' || rest[0] == ')' || rest[0] == '-' || rest[0] == ':')
	case c == '\n':
		return true
	}
	// "Name: value" begins a new entry.
	word, _, ok := strings.Cut(trimmed[:min(len(trimmed), longestLabel)], ": ")
	return ok && !strings.ContainsAny(word, " \n")
}

// sentenceEnd returns the start of the next sentence if the punctuation mark at i ends a
// sentence, and 0 otherwise.
func sentenceEnd(text string, i int) int {
	to := i + 1
	for to < len(text) && strings.IndexByte(`"')]`+"`", text[to]) >= 0 {
		to++
	}
	if to >= len(text) {
		return to
	}
	if text[to] != ' ' && text[to] != '\n' && text[to] != '\t' {
		return 0
	}
	for to < len(text) && (text[to] == ' ' || text[to] == '\n' || text[to] == '\t') {
		to++
	}
	if to < len(text) && isLower(text[to]) {
		return 0 // "e.g. this"
	}
	// A single letter before the mark is an initial.
	if text[i] == '.' && i >= 2 && isUpper(text[i-1]) && (text[i-2] == ' ' || text[i-2] == '.') {
		return 0
	}
	return to
}
