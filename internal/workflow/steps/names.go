package steps

import (
	"regexp"
	"strings"
	"sync"
)

// isID reports whether the text consists of lower-case letters, digits and hyphens.
func isID(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
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

// semanticVersion is the pattern of https://semver.org.
var semanticVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
		`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)
})

// isVersion reports whether the text is a semantic version.
func isVersion(text string) bool { return semanticVersion().MatchString(text) }

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
