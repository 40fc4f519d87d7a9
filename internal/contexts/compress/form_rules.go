package compress

import (
	"regexp"
	"slices"
	"strings"
)

// The rules in this file look at the form of a name that no other rule matches, and at its
// value: a participle is completed work ("patchedFiles", "optionsCompared"), a name that
// begins with a question word is an answer ("whyItFails"), and a participle with "at" or
// "on" and a date is a time ("fetchedOn").

// classifyForm returns the verdict by the form of the name, and false if no rule matches.
func (c *Classifier) classifyForm(key string, value []byte) (Verdict, bool) {
	words := keyWords(key)
	if len(words) < 2 {
		return Verdict{}, false
	}
	first, last := words[0], words[len(words)-1]
	switch {
	case slices.Contains([]string{"at", "on"}, last) && isParticiple(words[len(words)-2]):
		if c.content.date.Match(value) {
			return Verdict{Ephemeral, "the name and the value are a time", FromKey}, true
		}
		return Verdict{}, false
	case isQuestionWord(first) && slices.ContainsFunc(words, isStakeholder):
		return Verdict{Critical, "the name is a question about a stakeholder's wish, and the value is the answer", FromKey}, true
	case isQuestionWord(first):
		return Verdict{Important, "the name is a question, and the value is the answer", FromKey}, true
	case isFlagWord(first):
		return Verdict{}, false
	case isParticiple(last), isParticiple(first) && isPlural(last):
		return Verdict{Important, "the name describes completed work", FromKey}, true
	}
	return Verdict{}, false
}

// isQuestionWord reports whether the word is a question word.
func isQuestionWord(word string) bool {
	return slices.Contains([]string{"what", "why", "how", "where", "which", "who"}, word)
}

// isStakeholder reports whether the word names a stakeholder.
func isStakeholder(word string) bool {
	return slices.Contains([]string{"user", "users", "customer", "customers", "client", "clients", "owner", "owners", "stakeholder", "stakeholders"}, word)
}

// isFlagWord reports whether a flag begins with the word: "isDistributed" is a state, not
// completed work.
func isFlagWord(word string) bool {
	return slices.Contains([]string{"is", "are", "was", "were", "has", "have", "had", "can", "should", "be"}, word)
}

// isParticiple reports whether the word is a participle such as "compared". Short words and
// those that end with "-eed" are mostly nouns ("feed", "speed"), and some participles name
// a state, not completed work.
func isParticiple(word string) bool {
	const shortest = 6
	states := []string{"enabled", "disabled", "selected", "embedded", "shared", "nested", "unused", "cached", "hundred", "indexed", "ordered", "sorted", "related"}
	return len(word) >= shortest && strings.HasSuffix(word, "ed") && !strings.HasSuffix(word, "eed") && !slices.Contains(states, word)
}

// isPlural reports whether the word is a plural such as "files", unlike "status".
func isPlural(word string) bool {
	return len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is")
}

// datePattern returns the pattern of a date, with or without a time, or of seconds or
// milliseconds since 1970.
func datePattern() *regexp.Regexp {
	return regexp.MustCompile(`^("\d{4}-\d\d-\d\d([T ][0-9:.,Z+ -]*)?"|1\d{9}(\d{3})?)$`)
}
