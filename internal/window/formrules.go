package window

import (
	"regexp"
	"slices"
	"strings"
)

// The rules here look at the form of a name that no rule of names applies to, and at
// the value beside it: a participle is something that was done ("patchedFiles",
// "optionsCompared"), a name that begins like a question is its answer ("whyItFails"),
// and what was done at or on a date is a moment ("fetchedOn").

// byForm tells the layer of an item by the form of its name; false where that says
// nothing.
func (c *Classifier) byForm(key string, value []byte) (Verdict, bool) {
	words := keyWords(key)
	if len(words) < 2 {
		return Verdict{}, false
	}
	first, last := words[0], words[len(words)-1]
	switch {
	case slices.Contains([]string{"at", "on"}, last) && isParticiple(words[len(words)-2]):
		if c.content.date.Match(value) {
			return Verdict{Ephemeral, "the name and the value tell when something was done", FromKey}, true
		}
		return Verdict{}, false
	case isAnswer(first) && slices.ContainsFunc(words, mayAsk):
		return Verdict{Critical, "the name asks what somebody wants, and the value answers", FromKey}, true
	case isAnswer(first):
		return Verdict{Important, "the name asks, and the value answers", FromKey}, true
	case isPredicate(first):
		return Verdict{}, false
	case isParticiple(last), isParticiple(first) && isPlural(last):
		return Verdict{Important, "the name tells of something that was done", FromKey}, true
	}
	return Verdict{}, false
}

// isAnswer tells the words that a question begins with.
func isAnswer(word string) bool {
	return slices.Contains([]string{"what", "why", "how", "where", "which", "who"}, word)
}

// mayAsk tells the words for those whose wishes count.
func mayAsk(word string) bool {
	return slices.Contains([]string{"user", "users", "customer", "customers", "client", "clients", "owner", "owners", "stakeholder", "stakeholders"}, word)
}

// isPredicate tells the words that a flag begins with: "isDistributed" says how a thing
// is, and not what was done.
func isPredicate(word string) bool {
	return slices.Contains([]string{"is", "are", "was", "were", "has", "have", "had", "can", "should", "be"}, word)
}

// isParticiple tells a word such as "compared". Short ones and those on "-eed" are
// mostly other words ("feed", "speed"), and some tell of a state and not of a deed.
func isParticiple(word string) bool {
	const shortest = 6
	states := []string{"enabled", "disabled", "selected", "embedded", "shared", "nested", "unused", "cached", "hundred", "indexed", "ordered", "sorted", "related"}
	return len(word) >= shortest && strings.HasSuffix(word, "ed") && !strings.HasSuffix(word, "eed") && !slices.Contains(states, word)
}

// isPlural tells a word such as "files" from one such as "status".
func isPlural(word string) bool {
	return len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") && !strings.HasSuffix(word, "is")
}

// dated is a value that is a date, with a time of day or not, or a count of seconds or
// milliseconds since 1970.
func dated() *regexp.Regexp {
	return regexp.MustCompile(`^("\d{4}-\d\d-\d\d([T ][0-9:.,Z+ -]*)?"|1\d{9}(\d{3})?)$`)
}
