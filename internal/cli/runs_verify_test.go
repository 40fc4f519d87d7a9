package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runscmd "github.com/guideway-dev/guideway/internal/cli/runs"
	"github.com/guideway-dev/guideway/internal/run"
)

// A report names each broken link once, and suggests accepting the current state only after
// all other fixes.
func TestVerifyReportsBrokenLinks(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	runscmd.WriteReport(&host, &run.Report{Runs: 3, Events: 20, Faults: []run.Fault{
		{Kind: run.FaultHeads, Message: "2 lines of the head file were edited"},
		{Run: "r_a", Seq: 3, Kind: run.FaultEdited, Message: "event 3 (step_completed) is not what was written"},
		{Run: "r_b", Seq: 5, Kind: run.FaultTruncated, Message: "the last event was 6 and is now 4"},
	}})
	want := []string{
		"2 lines of the head file were edited [heads]",
		"r_a  event 3 (step_completed) is not what was written [edited]",
		"r_b  event 5: the last event was 6 and is now 4 [truncated]",
		"",
		"broken: 3 broken links in 3 runs, 20 events",
		"If you restored the data from a backup: guideway runs verify --accept-restore",
		"Find out why the head file changed. To accept the current state as the valid history: guideway runs verify --accept-restore",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
