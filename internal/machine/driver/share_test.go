package driver_test

import (
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
)

// Members of a project use each other's runs in it. A record that was edited to be in the
// project stays private, and so does a run that a stranger places into it.
func TestEditedProjectIsNotShared(t *testing.T) {
	t.Parallel()
	const shared = "0123456789ab"
	journal := newMemory()
	r := newRig(t, journal, []*machinedef.Definition{parseMachine(t, `{"workflow_name":"ask","description":"Asks.","inputs":[],"output":{"name":"reply","type":"string","description":"A reply."},"contexts":[{"name":"talk"}],"agents":[{"agent_role":"writer","context":"talk","role":"assistant"}],"states":[{"name":"start","input":{"name":"verdict","type":"string","description":"May it go?"}},{"name":"stop","input":"common_data.reply"}]}`, `{"writer":{"systemMessage":"Write."}}`)}, nil, `{"rules":[{"content":"x"}]}`, func(o *driver.Options) {
		o.Shares = run.Shares{{Project: shared, Members: []string{"anna", "bob"}}}
	})
	bob, eve := anna, anna
	bob.User, eve.User = "bob", "eve"
	start := func(c run.Caller, project string) string {
		s, err := r.Start(t.Context(), c, driver.StartRequest{Machine: "ask", Project: run.Project{ID: project}})
		if err != nil {
			t.Fatal(err)
		}
		return s.RunID
	}
	open, private, planted := start(anna, shared), start(anna, "aaaaaaaaaaaa"), start(eve, shared)
	journal.mu.Lock()
	edited := journal.records[private]
	edited.Project.ID = shared
	journal.records[private] = edited
	journal.mu.Unlock()
	list, err := r.List(t.Context(), bob, run.Filter{})
	if err != nil || len(list) != 1 || list[0].ID != open {
		t.Errorf("bob sees %+v, %v", list, err)
	}
	for id, sees := range map[string]bool{open: true, private: false, planted: false} {
		if _, err := r.Status(t.Context(), bob, id); (err == nil) != sees {
			t.Errorf("bob gets %s: %v", id, err)
		}
		if _, err := r.Cancel(t.Context(), bob, id, "x"); (err == nil) != sees {
			t.Errorf("bob cancels %s: %v", id, err)
		}
	}
}
