package run_test

import (
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestToolScopes checks that the policy of a run is that of its current step, also in a
// second service on the same store that did not see the run continue; that the scope of a
// run without policies also names its step; and that ended runs and runs of other users
// have no scope.
func TestToolScopes(t *testing.T) {
	t.Parallel()
	b, ctx := newTestBench(t), t.Context()
	b.shelf["tools"] = testWorkflow("tools", `[
		{"id":"one","title":"One","prompt":"p","tools":{"allow":["a"]}},{"id":"two","title":"Two","prompt":"p","tools":{"deny":["b"]}}]`)
	a, free := startRun(t, b.Service, "tools", nil), startRun(t, b.Service, "guarded", nil)
	other := b.newService(t)
	check := func(when string, c run.Caller, want string) {
		t.Helper()
		for _, s := range []*run.Service{b.Service, other} {
			scopes, err := s.ToolScopes(ctx, c, a.RunID, "r_0123456789abcdefghjkmnp", free.RunID)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, scope := range scopes {
				got += fmt.Sprint(scope.Workflow, " ", scope.Step, ": ", scope.Policy.String(), ". ")
			}
			if got != want {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
	}
	check("at the start", agentCaller(), "tools one: only a. guarded plan: . ")
	check("for another user", run.Caller{Principal: guideway.Principal{User: "bob"}}, "")
	next, err := b.Continue(ctx, agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "x"})
	if err != nil {
		t.Fatal(err)
	}
	check("after a step", agentCaller(), "tools two: never b. guarded plan: . ")
	ids, err := other.OpenRuns(ctx, agentCaller(), "")
	if err != nil || len(ids) != 2 {
		t.Errorf("OpenRuns returned %v, %v", ids, err)
	}
	if ids, _ := other.OpenRuns(ctx, agentCaller(), "another client"); len(ids) != 0 {
		t.Errorf("OpenRuns of another client returned %v", ids)
	}
	if _, err := b.Continue(ctx, agentCaller(), run.ContinueRequest{Handle: next.Handle, Output: "x"}); err != nil {
		t.Fatal(err)
	}
	check("after the end", agentCaller(), "guarded plan: . ")
}
