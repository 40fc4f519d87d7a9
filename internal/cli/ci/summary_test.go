package ci

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSummary compares the summary of a report that has every part with the stored one.
func TestSummary(t *testing.T) {
	t.Parallel()
	refusals := []*attest.Refusal{{Reason: attest.ReasonKey, Message: "no trusted key", Fix: "sign it"}, {Reason: attest.ReasonKey, Message: "another"}}
	s := attest.NewStatement(strings.Repeat("a", 40), strings.Repeat("b", 40), attest.Predicate{
		Run: attest.Run{ID: "r_1"}, Workflow: attest.Workflow{ID: "task", Version: "1.0"},
		Steps: []attest.Step{
			{ID: "plan", Label: attest.Claim},
			{ID: "test", Label: attest.Claim, Checks: []attest.Check{{Name: "test", Passed: true}, {Name: "lint"}}},
		},
		Approvals: []attest.Approval{{Gate: "merge", Option: "yes", By: "ann", Via: "browser"}, {Gate: "ship", Option: "no", Via: "terminal"}},
	})
	r := &Report{
		Verdict: Refused, Base: strings.Repeat("b", 40), Head: strings.Repeat("c", 40), Changed: 7, Unmatched: []string{"z.txt"},
		Problems: []Problem{{Message: "no policy", Fix: "write one"}, {Message: "no fix"}},
		Needs: []*Need{
			{Workflow: "task", Paths: []string{"a", "b", "c", "d", "e", "f", "g"}, Refusals: refusals},
			{Workflow: "task", Paths: []string{"h"}, Attestation: "run.json"},
			{Workflow: "task", Paths: []string{"i"}},
			{Paths: []string{"j"}},
		},
		Checks: []*Check{
			{Name: "trusted", State: StateTrusted, Host: "ci-1", Argv: []string{"make", "test"}, DurationMS: 1234},
			{Name: "unknown", State: StateUnknown},
			{Name: "again", State: StatePassed, Argv: []string{"make"}, Replaced: []string{"Makefile"}},
			{Name: "failed", State: StateFailed, Message: "exit code 1", Output: "one\ntwo ```\n\n"},
			{Name: "silent", State: StateFailed, Message: "exit code 2"},
		},
		Attestations: []*Attestation{
			{File: "run.json", Keys: []string{"0123456789abcdef"}, Refusals: refusals, statement: s},
			{File: "bad.json", Refusals: refusals},
		},
	}
	var got strings.Builder
	for _, each := range []*Report{r, {Verdict: Passed, Base: "b", Head: "c", Changed: 1}, {Verdict: Undecided, Problems: r.Problems}} {
		got.WriteString(each.Markdown() + "----\n")
	}
	file := filepath.Join("testdata", "summary.md")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got.String()); diff != "" {
		t.Errorf("the summary differs (-want +got):\n%s", diff)
	}
}
