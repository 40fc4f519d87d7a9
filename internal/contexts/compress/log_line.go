package compress

import "strings"

// logLine is a parsed log line.
type logLine struct {
	// level is error, warn, info, debug or "".
	level string
	// shape is the line without its time, numbers and ids: two lines of one shape are the
	// same message.
	shape string
}

// readLogLine parses a line and reports whether it looks like a log line.
func readLogLine(line string) (logLine, bool) {
	level, ok := logLevel(line)
	if !ok {
		return logLine{}, false
	}
	return logLine{level: level, shape: shapeOf(line)}, true
}

func isLogLine(line string) bool {
	_, ok := logLevel(line)
	return ok
}

// logLevel returns the level of a log line. A line looks like a log line if it begins with
// a time or names a level near its beginning.
func logLevel(line string) (level string, ok bool) {
	head := line[:min(len(line), 80)]
	level = levelIn(head)
	return level, level != "" || beginsWithTime(head)
}

// levelIn returns the level that the text names as a whole word.
func levelIn(head string) string {
	for field := range strings.FieldsFuncSeq(head, func(r rune) bool { return !('a' <= r|0x20 && r|0x20 <= 'z') }) {
		switch field {
		case "ERROR", "error", "FATAL", "fatal", "CRITICAL", "PANIC", "panic", "SEVERE", "ERR":
			return "error"
		case "WARN", "warn", "WARNING", "warning":
			return "warn"
		case "INFO", "info", "NOTICE", "notice":
			return "info"
		case "DEBUG", "debug", "TRACE", "VERBOSE":
			return "debug"
		}
	}
	return ""
}

// beginsWithTime reports whether a line begins with a date or a time of day, optionally in
// brackets.
func beginsWithTime(head string) bool {
	head = strings.TrimLeft(head, "[( \t")
	digits, marks := 0, 0
	for i := range min(len(head), 12) {
		switch c := head[i]; {
		case isDigit(c):
			digits++
		case c == ':' || c == '-' || c == '/' || c == 'T':
			marks++
		default:
			return digits >= 4 && marks >= 2
		}
	}
	return digits >= 4 && marks >= 2
}

// shapeOf replaces every word that contains a digit by #, and of name=value only the value.
func shapeOf(line string) string {
	var b strings.Builder
	b.Grow(len(line))
	for field := range strings.FieldsSeq(line) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if i := strings.IndexByte(field, '='); i > 0 && strings.ContainsAny(field[i:], "0123456789") {
			b.WriteString(field[:i+1])
			b.WriteByte('#')
			continue
		}
		if strings.ContainsAny(field, "0123456789") {
			b.WriteByte('#')
			continue
		}
		b.WriteString(field)
	}
	return b.String()
}
