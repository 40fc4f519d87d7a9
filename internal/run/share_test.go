package run_test

import (
	"slices"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
)

const sharedProject = "0123456789ab"

// newSharedBench returns a service with a project that ada and bob share. Eve is a member of
// another project.
func newSharedBench(t *testing.T) *testBench {
	t.Helper()
	return newTestBench(t, func(o *run.Options) {
		o.Shares = []run.Share{{Project: sharedProject, Members: []string{"ada", "bob"}}, {Project: "ba9876543210", Members: []string{"eve"}}, {Project: project.ID("/src/shop"), Members: []string{"ada", "bob"}}}
	})
}

func member(user string, via run.Via, roles ...guideway.Role) run.Caller {
	return run.Caller{Principal: guideway.Principal{User: user, Roles: append([]guideway.Role{}, roles...)}, Via: via}
}

// listRuns returns the goals of the runs that a caller sees in lists and searches.
func listRuns(t *testing.T, b *testBench, c run.Caller) (ids []string) {
	t.Helper()
	records, err := b.List(t.Context(), c, run.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	for _, query := range []string{"", "release"} {
		found, err := b.Resume(t.Context(), c, run.ResumeRequest{Query: query, Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			if !slices.Contains(ids, r.RunID) {
				t.Errorf("a search finds %s, which is not in the list", r.RunID)
			}
		}
		if len(found) != len(ids) {
			t.Errorf("a search for %q finds %d runs, the list has %d", query, len(found), len(ids))
		}
	}
	return ids
}

// Members of a project see and use each other's runs in it, and no others: neither the runs
// of a member in other projects, nor runs that a stranger places into the project.
func TestMembersShareRuns(t *testing.T) {
	t.Parallel()
	b := newSharedBench(t)
	start := func(user, project string) *run.Answer {
		a, err := b.Start(t.Context(), member(user, run.ViaAgent, guideway.RoleOperator), run.StartRequest{WorkflowID: "person", Goal: "release it", Project: run.Project{ID: project, Path: "/src"}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	shared, private, planted := start("ada", sharedProject), start("ada", "aaaaaaaaaaaa"), start("eve", sharedProject)
	bob, eve := member("bob", run.ViaAgent, guideway.RoleOperator), member("eve", run.ViaAgent, guideway.RoleOperator)
	if got := listRuns(t, b, bob); !slices.Equal(got, []string{shared.RunID}) {
		t.Errorf("bob sees %v, want %s", got, shared.RunID)
	}
	if got := listRuns(t, b, eve); !slices.Equal(got, []string{planted.RunID}) {
		t.Errorf("eve sees %v, want %s", got, planted.RunID)
	}
	for _, c := range []struct {
		who  run.Caller
		run  *run.Answer
		sees bool
	}{{bob, shared, true}, {bob, private, false}, {bob, planted, false}, {eve, shared, false}, {eve, private, false}, {member("", run.ViaAgent), shared, false}} {
		for _, ref := range []run.Ref{{RunID: c.run.RunID}, {Handle: c.run.Handle}} {
			_, err := b.Get(t.Context(), c.who, ref)
			if (err == nil) != c.sees || !c.sees && guideway.ErrorCode(err) != guideway.CodeNotFound {
				t.Errorf("%s gets %+v of %s: %v", c.who.User, ref, c.run.RunID, err)
			}
			if _, err := b.Fork(t.Context(), c.who, run.ForkRequest{Ref: ref}); (err == nil) != c.sees {
				t.Errorf("%s forks %+v: %v", c.who.User, ref, err)
			}
		}
	}
	gate, err := b.Continue(t.Context(), bob, run.ContinueRequest{Handle: shared.Handle, Output: "the plan"})
	if err != nil {
		t.Fatal(err)
	}
	// Who works on a run does not approve it without the role.
	answer := run.AnswerRequest{Ref: run.Ref{Handle: gate.Handle}, Answer: engine.Answer{OptionID: engine.OptionConfirm}}
	_, err = b.Answer(t.Context(), member("bob", run.ViaBrowser, guideway.RoleOperator), answer)
	checkRule(t, err, engine.RuleRole)
	if _, err := b.Answer(t.Context(), member("eve", run.ViaBrowser, guideway.RoleAdmin), answer); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a stranger approves: %v", err)
	}
	if _, err := b.Answer(t.Context(), member("bob", run.ViaBrowser, guideway.RoleApprover), answer); err != nil {
		t.Errorf("an approver of the project: %v", err)
	}
	d, err := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: shared.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Events[len(d.Events)-1]; last.By.User != "bob" || last.By.Via != run.ViaBrowser {
		t.Errorf("the answer is by %+v", last.By)
	}
	// A fork by someone who could not approve alone stops before the gate.
	for _, c := range []run.Caller{bob, member("bob", run.ViaBrowser, guideway.RoleOperator)} {
		fork, err := b.Fork(t.Context(), c, run.ForkRequest{Ref: run.Ref{RunID: shared.RunID}})
		if err != nil || !fork.Position.Person {
			t.Errorf("the fork of %+v is at %+v, %v", c, fork, err)
		}
	}
}

// A record that was edited to be in a shared project stays private.
func TestEditedProjectIsNotShared(t *testing.T) {
	t.Parallel()
	b := newSharedBench(t)
	a, err := b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "person", Goal: "release it", Project: run.Project{ID: "aaaaaaaaaaaa", Path: "/src"}})
	if err != nil {
		t.Fatal(err)
	}
	edited := b.journal.records[a.RunID]
	edited.Project.ID = sharedProject
	b.journal.records[a.RunID] = edited
	bob := member("bob", run.ViaAgent, guideway.RoleOperator)
	if got := listRuns(t, b, bob); len(got) > 0 {
		t.Errorf("bob sees %v", got)
	}
	if _, err := b.Get(t.Context(), bob, run.Ref{RunID: a.RunID}); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("bob gets the run: %v", err)
	}
}

// Only the local user names any directory of this computer as the project of a run, because
// its checks read and execute there; other users name those of their shared projects.
func TestPeopleNameNoOtherDirectories(t *testing.T) {
	t.Parallel()
	b := newSharedBench(t)
	shop := project.ID("/src/shop")
	local := run.Caller{Principal: guideway.Principal{User: "ann"}, Via: run.ViaAgent}
	for _, c := range []struct {
		who         run.Caller
		given, want run.Project
	}{
		{local, run.Project{ID: "x", Path: "/home/ann", Branch: "main"}, run.Project{ID: "x", Path: "/home/ann", Branch: "main"}},
		{member("ada", run.ViaBrowser, guideway.RoleOperator), run.Project{ID: shop, Path: "/home/ann", Branch: "main"}, run.Project{ID: shop}},
		{member("ada", run.ViaAgent, guideway.RoleOperator), run.Project{ID: sharedProject, Path: "/src/shop"}, run.Project{ID: shop, Path: "/src/shop"}},
		{member("eve", run.ViaAgent, guideway.RoleAdmin), run.Project{ID: shop, Path: "/src/shop"}, run.Project{ID: shop}},
	} {
		a, err := b.Start(t.Context(), c.who, run.StartRequest{WorkflowID: "person", Goal: "g", Project: c.given})
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Get(t.Context(), c.who, run.Ref{RunID: a.RunID})
		if err != nil || d.Project != c.want {
			t.Errorf("%s names %+v: the run has %+v, want %+v (%v)", c.who.User, c.given, d.Project, c.want, err)
		}
	}
}
