package compress

import "strings"

// The functions in this file search for a few fixed words and check the text around each. A
// regular expression that tries all words at every position is about a hundred times
// slower, and a context can have a hundred kilobytes.

// hasErrorSignal reports whether the text reports an error that happened, such as an
// exception, a panic, a failed test, a system error name, the word ERROR, or a line that
// begins with "error:".
func hasErrorSignal(text string) bool {
	return matchAnywhere(text, "rror", func(at int) bool { return isError(text, at) }) ||
		matchAnywhere(text, "ERROR", func(at int) bool { return isWord(text, at, len("ERROR")) }) ||
		matchAnywhere(text, "xception", func(at int) bool { return at > 0 && text[at-1] == 'E' && isThrown(text, at-1, len("Exception")) }) ||
		matchAnywhere(text, "panic", func(at int) bool { return isPanic(text, at) }) ||
		matchAnywhere(text, "fatal", func(at int) bool { return isPanic(text, at) }) ||
		matchAnywhere(text, "FATAL", func(at int) bool { return isWord(text, at, len("FATAL")) }) ||
		matchAnywhere(text, "Traceback (most recent", func(at int) bool { return beginsWord(text, at) }) ||
		matchAnywhere(text, "FAIL", func(at int) bool { return isFailedTest(text, at) }) ||
		matchAnywhere(text, "E", func(at int) bool { return isSystemError(text, at) })
}

// matchAnywhere reports whether is returns true for the position of any occurrence of the
// word.
func matchAnywhere(text, word string, is func(at int) bool) bool {
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

// isError reports whether "rror" at a position is part of an error message: "TypeError: ",
// "Error at ", or at the beginning of a line "error: " or "error[E0308]: ".
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
		n := countLeading(rest[1:], isWordByte)
		if n == 0 || !strings.HasPrefix(rest[1+n:], "]") {
			return false
		}
		rest = rest[n+2:]
	}
	return strings.HasPrefix(rest, ": ")
}

// isThrown reports whether the name at a position ends the name of an exception and is
// followed by ":" or " at ".
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

// isPanic reports whether the text after "panic" or "fatal" at a position makes it an
// error.
func isPanic(text string, at int) bool {
	rest := text[at+len("panic"):]
	return (strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, " error")) && beginsWord(text, at)
}

// isFailedTest reports whether "FAIL" or "--- FAIL" begins a line.
func isFailedTest(text string, at int) bool {
	const mark = "--- "
	if at >= len(mark) && text[at-len(mark):at] == mark && beginsLine(text, at-len(mark)) {
		return true
	}
	return beginsLine(text, at) && endsWord(text, at+len("FAIL"))
}

// isSystemError reports whether the word is the name of a common system error.
func isSystemError(text string, at int) bool {
	if !beginsWord(text, at) {
		return false
	}
	n := countLeading(text[at:], isWordByte)
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
