package phases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// The codes of warnings about activities and skills.
const (
	CodeFieldMisspelt   = "field-misspelt"
	CodePhraseTwice     = "recognition-twice"
	CodePhraseEmpty     = "recognition-empty"
	CodeSupportsPrimary = "skill-twice"
)

// LintActivity is like Lint, for an activity.
func LintActivity(a *Activity, root *doc.Node, file string) []guideway.Diagnostic {
	l, at := &linter{parser: newParser(file)}, shape.Root(root, "activity")
	l.lintMisspelled(at, "id", "version", "problem", "recognition", "skills", "outcome", "flow", "context_to_preserve", "usage", "notes", "mandatory_guide")
	seen := map[string]int{}
	for i, phrase := range a.Recognition {
		key := strings.ToLower(strings.Join(strings.Fields(phrase), " "))
		one := at.Key("recognition").Index(i)
		if key == "" {
			l.Warnf(one, CodePhraseEmpty, "write a phrase, or remove the entry", "A phrase of 'recognition' is empty and matches no goal.")
		} else if first, ok := seen[key]; ok {
			l.Warnf(one, CodePhraseTwice, "keep one of the two phrases", "The phrase %s repeats phrase %d.", shape.Quote(phrase), first+1)
		} else {
			seen[key] = i
		}
	}
	names := []string{a.Skills.Primary}
	for i, name := range a.Skills.Supporting {
		if len(names) < shape.MaxNames && slices.Contains(names, name) {
			l.Warnf(at.Key("skills").Key("supporting").Index(i), CodeSupportsPrimary, "remove one of the two entries", "The skill '%s' is listed twice.", name)
		}
		names = append(names, name)
	}
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// LintSkill is like Lint, for a skill.
func LintSkill(root *doc.Node, file string) []guideway.Diagnostic {
	l := &linter{parser: newParser(file)}
	known := []string{"id", "version", "capability", "description"}
	for _, m := range l.skillMembers() {
		known = append(known, m.key)
	}
	at := shape.Root(root, "skill")
	l.lintMisspelled(at, known...)
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// lintMisspelled reports members of an open object that resemble a missing known member.
func (l *linter) lintMisspelled(at shape.Place, known ...string) {
	missing := slices.DeleteFunc(slices.Clone(known), func(key string) bool { return at.Node.Get(key) != nil })
	for i := range min(len(at.Node.Members), shape.MaxNames) {
		key := at.Member(i)
		if slices.Contains(known, key.Name) {
			continue
		}
		if guess := spelling.Closest(key.Name, missing); guess != "" {
			l.Warnf(key, CodeFieldMisspelt, fmt.Sprintf("did you mean '%s'?", guess), "The property '%s' is preserved, but has no effect.", key.Name)
		}
	}
}
