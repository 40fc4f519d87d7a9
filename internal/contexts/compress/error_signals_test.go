package compress

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestErrorSignals compares the word search with a regular expression, which is shorter but
// too slow for use.
func TestErrorSignals(t *testing.T) {
	t.Parallel()
	failure := regexp.MustCompile(`(?m)\b(panic|fatal)(: | error)|\bTraceback \(most recent|\b[A-Za-z.]*(Error|Exception)\b(:| at )|` +
		`\bE(NOENT|ACCES|PERM|CONNREFUSED|ADDRINUSE|EXIST|TIMEDOUT)\b|^--- FAIL|^FAIL\b|\bERROR\b|\bFATAL\b|^[Ee]rror(\[\w+\])?: `)
	parts := []string{
		"panic", "fatal", ": ", " error", "Traceback (most recent", "Traceback", "Error", "Exception", ":", " at ", " ", "\n", "\n", "a", "Type", "1", "_", ".", "java.lang.",
		"ENOENT", "EACCES", "EPERM", "ECONNREFUSED", "EADDRINUSE", "EEXIST", "ETIMEDOUT", "E", "--- ", "--- FAIL", "FAIL", "ERROR", "FATAL", "rror", "error", "[E0308]", "[]",
		"[", "]", "é", "S", "-", "xception", "\t",
	}
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 9).Draw(t, "parts"), "")
		want := failure.MatchString(text)
		if got := hasErrorSignal(text); got != want {
			t.Fatalf("hasErrorSignal(%q) = %v, want %v", text, got, want)
		}
		if want {
			matched++
		}
	})
	if matched == 0 {
		t.Error("no text reported an error")
	}
}

// TestErrorSignalsOfShortTexts checks that the cheap test before a regular expression skips no
// text that matches.
func TestErrorSignalsOfShortTexts(t *testing.T) {
	t.Parallel()
	rules := compileContentRules()
	parts := []string{
		"we", " ", "decided", "Decision: ", "agreed", "chose", "have ", "it was ", "the ", "user", "Users", "customer", "product owner", "Stakeholder", "client",
		" said", " wants", " must", "not", " never", "you ", "They ", "/", "\\", "C:", "src", ".go", ":12", "a-b", "x",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 9).Draw(t, "parts"), "")
		want := plainContent
		switch {
		case rules.decision.MatchString(text):
			want = decisionContent
		case rules.demand.MatchString(text):
			want = demandContent
		case rules.path.MatchString(text) || rules.id.MatchString(text):
			want = locatorContent
		}
		if got := rules.detectShortKind(text, true); got != want {
			t.Fatalf("%q has kind %d, want %d", text, got, want)
		}
	})
}
