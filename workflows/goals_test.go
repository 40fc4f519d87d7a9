package workflows_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/catalog/library"
)

// A goal that does not use the words of a phrase must match the intended activity or be
// ambiguous. It must never match a different activity, especially if it is negated.
func TestGoalsInOtherWords(t *testing.T) {
	t.Parallel()
	lib := loadBundled(t).Library()
	const ask, none = "?", ""
	for goal, want := range map[string]string{
		"I want to pick up the work from last week": "resume-workflow",
		"go on":                                          "resume-workflow",
		"run the bug-investigation workflow":             "start-workflow",
		"guide me through something":                     "start-workflow",
		"what workflows do you have":                     "start-workflow",
		"start ticket-to-merge":                          "deliver-ticket",
		"Can you fix bug #42 and get it merged?":         "deliver-ticket",
		"please implement JIRA-1234":                     "deliver-ticket",
		"new feature: export to CSV":                     "deliver-ticket",
		"Our checkout page returns 500 for everyone":     "handle-incident",
		"latency has tripled since the deploy":           "handle-incident",
		"customers can't log in":                         "handle-incident",
		"the site is slow for some customers":            "handle-incident",
		"rollback the release, the error rate is rising": "handle-incident",
		"let's do the incident-response workflow":        "handle-incident",
		"stop this workflow":                             "end-workflow",
		"let's wrap this up":                             "end-workflow",
		"cancel":                                         "end-workflow",
		"how much is left to do":                         "show-progress",
		"what is next?":                                  "show-progress",

		"finish the ticket":                ask,
		"don't start a workflow":           ask,
		"I do not want to resume anything": ask,

		"restart the workflow": none,
		"write me a poem":      none,
		"book a flight":        none,
		"the user wants":       none,
		"2024":                 none,
	} {
		status, matches := lib.Match(goal)
		got := none
		switch status {
		case library.MatchFound:
			got = matches[0].Activity.ID
		case library.MatchAmbiguous:
			got = ask
		case library.MatchNone:
		}
		if got != want {
			t.Errorf("%q: %q, want %q", goal, got, want)
			for _, m := range matches {
				t.Logf("  %s %v %q", m.Activity.ID, m.Score, m.Why)
			}
		}
	}
}
