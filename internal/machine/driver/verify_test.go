package driver_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
)

// inEveryPosition writes runs of every status to a journal: completed, cancelled, forked,
// paused, and waiting for a sub-machine. It returns the completed one.
func inEveryPosition(t *testing.T, journal *memory) (*rig, string) {
	t.Helper()
	heads, err := rollbackguard.Open(filepath.Join(t.TempDir(), "heads"), journalKey())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, journal, []*machinedef.Definition{
		parseMachine(t, tenCalls, tenRoles), parseMachine(t, waiting, smallRoles), parseMachine(t, outer, smallRoles), parseMachine(t, smallMachine("", ""), smallRoles),
	}, tenHandlers(), tenScript(), func(o *driver.Options) { o.Heads = heads })
	r.tools.infos = newTen(t, newMemory()).tools.infos
	id := r.startRun("ten", map[string]any{"task": "x"})
	r.driveRun(id)
	if _, err := r.Fork(t.Context(), anna, id, 12); err != nil {
		t.Fatal(err)
	}
	r.model.answers = answersOf(t, `{"rules": [{"content": "fine"}]}`)
	r.driveRun(r.startRun("outer", map[string]any{"what": "the plan"}))
	r.handlers["keep"] = func(*this) (any, error) { return nil, errors.New("it broke") }
	r.driveRun(r.startRun("small", nil)) // this run ends paused
	ended := r.startRun("waiting", map[string]any{"topic": "x"})
	if _, err := r.Cancel(t.Context(), anna, ended, "enough"); err != nil {
		t.Fatal(err)
	}
	return r, id
}

// TestVerify checks that Verify reports no fault in an unchanged journal, and the kind of
// each change.
func TestVerify(t *testing.T) {
	t.Parallel()
	clean, _ := inEveryPosition(t, newMemory())
	report, err := clean.Verify(t.Context(), "")
	if err != nil || len(report.Faults) > 0 || report.Runs != 6 {
		t.Fatalf("the report on an unchanged journal is %+v, %v", report, err)
	}
	tests := []struct {
		name   string
		kind   run.FaultKind
		tamper func(m *memory, id string)
	}{
		{"an event was edited", run.FaultEdited, func(m *memory, id string) {
			e := &m.events[id][20]
			e.Data = bytes.Replace(bytes.Clone(e.Data), []byte("s__"), []byte("t__"), 1)
			e.Data = append(e.Data[:len(e.Data)-1], []byte(`,"reason":"x"}`)...)
		}},
		{"an event was removed", run.FaultGap, func(m *memory, id string) {
			m.events[id] = slices.Delete(slices.Clone(m.events[id]), 10, 11)
		}},
		{"the last events were removed", run.FaultTruncated, func(m *memory, id string) { cutAt(m, id, 30) }},
		{"the database is an older copy", run.FaultTruncated, func(m *memory, id string) {
			cutAt(m, id, 30)
			rec := m.records[id]
			rec.Seq, rec.Head = 30, m.events[id][29].MAC
			m.records[id] = rec
		}},
		{"the run was removed", run.FaultMissing, func(m *memory, id string) {
			delete(m.records, id)
			delete(m.events, id)
		}},
		{"the record has a different status", run.FaultRecord, func(m *memory, id string) {
			rec := m.records[id]
			rec.Status = "running"
			m.records[id] = rec
		}},
		{"the definition is different", run.FaultDefinition, func(m *memory, id string) {
			d := m.defs[m.records[id].Hash]
			d.Text = strings.Replace(d.Text, "Ten calls.", "Two calls.", 1)
			m.defs[m.records[id].Hash] = d
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			journal := newMemory()
			r, id := inEveryPosition(t, journal)
			tt.tamper(journal, id)
			for _, which := range []string{"", id} {
				report, err := r.Verify(t.Context(), which)
				if err != nil || !slices.ContainsFunc(report.Faults, func(f run.Fault) bool { return f.Kind == tt.kind && f.Run == id }) {
					t.Errorf("%q: the report is %+v, %v", which, report, err)
				}
			}
		})
	}
}

func cutAt(m *memory, id string, n int) { m.events[id] = slices.Clone(m.events[id][:n]) }
