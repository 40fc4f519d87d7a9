package window

import "strings"

// What follows reads a text for the few fixed words that tell what it is, and looks
// around each: an expression that tries all of them at every place takes a hundred
// times as long, and a context has a hundred kilobytes.

// failsIn tells whether a text tells of an error that happened: an exception, a
// panic, a failed test, a system's error by name, a line that begins with "error:".
func failsIn(text string) bool {
	return anywhere(text, "rror", func(at int) bool { return isError(text, at) }) ||
		anywhere(text, "ERROR", func(at int) bool { return isWord(text, at, len("ERROR")) }) ||
		anywhere(text, "xception", func(at int) bool { return at > 0 && text[at-1] == 'E' && isThrown(text, at-1, len("Exception")) }) ||
		anywhere(text, "panic", func(at int) bool { return isPanic(text, at) }) ||
		anywhere(text, "fatal", func(at int) bool { return isPanic(text, at) }) ||
		anywhere(text, "FATAL", func(at int) bool { return isWord(text, at, len("FATAL")) }) ||
		anywhere(text, "Traceback (most recent", func(at int) bool { return beginsWord(text, at) }) ||
		anywhere(text, "FAIL", func(at int) bool { return isFailedTest(text, at) }) ||
		anywhere(text, "E", func(at int) bool { return isSystemError(text, at) })
}

// anywhere tries every place where a word stands.
func anywhere(text, word string, is func(at int) bool) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		if is(from + i) {
			return true
		}
		from += i + 1
	}
}

// isError looks around "rror": "TypeError: ", "Error at ", and "error: " or
// "error[E0308]: " at the beginning of a line.
func isError(text string, at int) bool {
	if at == 0 {
		return false
	}
	first := at - 1
	if text[first] == 'E' && isThrown(text, first, len("Error")) {
		return true
	}
	if text[first]|0x20 != 'e' || first > 0 && text[first-1] != '\n' {
		return false
	}
	rest := text[at+len("rror"):]
	if strings.HasPrefix(rest, "[") {
		n := run(rest[1:], isWordByte)
		if n == 0 || !strings.HasPrefix(rest[1+n:], "]") {
			return false
		}
		rest = rest[n+2:]
	}
	return strings.HasPrefix(rest, ": ")
}

// isThrown tells an exception by what stands behind its name, if that does not go on
// from a number.
func isThrown(text string, at, length int) bool {
	rest := text[at+length:]
	if !strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, " at ") {
		return false
	}
	for i := at - 1; i >= 0; i-- {
		switch c := text[i]; {
		case c == '.':
			return true
		case !isLetter(c):
			return !isWordByte(c)
		}
	}
	return true
}

// isPanic looks behind "panic" and "fatal".
func isPanic(text string, at int) bool {
	rest := text[at+len("panic"):]
	return (strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, " error")) && beginsWord(text, at)
}

// isFailedTest tells "FAIL" and "--- FAIL" at the beginning of a line.
func isFailedTest(text string, at int) bool {
	const mark = "--- "
	if at >= len(mark) && text[at-len(mark):at] == mark && beginsLine(text, at-len(mark)) {
		return true
	}
	return beginsLine(text, at) && endsWord(text, at+len("FAIL"))
}

// isSystemError tells the names of the errors of a system that tell of a failure.
func isSystemError(text string, at int) bool {
	if !beginsWord(text, at) {
		return false
	}
	n := run(text[at:], isWordByte)
	switch text[at : at+n] {
	case "ENOENT", "EACCES", "EPERM", "ECONNREFUSED", "EADDRINUSE", "EEXIST", "ETIMEDOUT":
		return true
	}
	return false
}

func beginsLine(text string, at int) bool { return at == 0 || text[at-1] == '\n' }

func beginsWord(text string, at int) bool { return at == 0 || !isWordByte(text[at-1]) }

func endsWord(text string, at int) bool { return at >= len(text) || !isWordByte(text[at]) }

func isWord(text string, at, length int) bool {
	return beginsWord(text, at) && endsWord(text, at+length)
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }
