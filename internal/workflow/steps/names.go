package steps

import "strings"

// isID reports whether the text consists of lower-case letters, digits and hyphens.
func isID(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return text != ""
}

// toID converts a text to an ID: "My Step_1" becomes "my-step-1".
func toID(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String()[:min(b.Len(), 64)], "-")
}

// isIdentifier reports whether the text is a JavaScript name in ASCII without dollar signs.
func isIdentifier(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// isVersion reports whether the text is a semantic version.
func isVersion(text string) bool {
	text, build, hasBuild := strings.Cut(text, "+")
	if hasBuild && !allParts(build, isVersionWord) {
		return false
	}
	core, pre, hasPre := strings.Cut(text, "-")
	if hasPre && !allParts(pre, func(part string) bool {
		return isVersionWord(part) && (!isDigits(part) || isVersionNumber(part))
	}) {
		return false
	}
	return strings.Count(core, ".") == 2 && allParts(core, isVersionNumber)
}

// allParts reports whether every part between dots satisfies ok.
func allParts(text string, ok func(string) bool) bool {
	for part := range strings.SplitSeq(text, ".") {
		if !ok(part) {
			return false
		}
	}
	return true
}

// isVersionWord reports whether the text consists of letters, digits and hyphens.
func isVersionWord(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return text != ""
}

// isDigits reports whether the text consists of digits.
func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// isVersionNumber reports whether the text is a number without leading zeros.
func isVersionNumber(text string) bool {
	return isDigits(text) && (text == "0" || text[0] != '0')
}

// otherNames returns the dialect's names for a synonym.
func otherNames(name string) []string {
	if other := otherName(name); other != "" {
		return []string{other}
	}
	return nil
}

// otherName returns the dialect's name for a synonym, or "".
func otherName(name string) string {
	switch strings.ToLower(name) {
	case "condition", "when", "if":
		return "runCondition"
	case "role", "persona":
		return "agentRole"
	case "validation", "criteria":
		return "validationCriteria"
	case "approver", "approvedby":
		return "approval"
	case "confirm", "requiresconfirmation":
		return "requireConfirmation"
	case "functions":
		return "functionDefinitions"
	case "max", "maxiteration":
		return "maxIterations"
	case "instructions", "text":
		return "prompt"
	case "ne", "neq", "notequals":
		return "not_equals"
	case "eq", "is":
		return "equals"
	case "variable":
		return "var"
	default:
		return ""
	}
}
