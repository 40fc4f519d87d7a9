package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
	"github.com/guideway-dev/guideway/internal/run"
)

const deskMachine = `{"workflow_name":"desk","description":"Writes, and asks.",
"input":{"name":"request","type":"string","description":"What is wanted."},"output":{"name":"reply","type":"string","description":"What is said."},
"contexts":[{"name":"talk"}],"agents":[{"agent_role":"writer","context":"talk","role":"assistant"}],
"states":[{"name":"start","agent":"writer","post_handler":"keep","next_state":"approve"},
{"name":"approve","input":{"name":"verdict","type":"string","description":"May it go?","options":["yes","no"],"approval":"human"}},
{"name":"stop","input":"common_data.reply"}]}`

// testMachines runs the machines of a catalog with a scripted model. It also serves as
// their handler.
type testMachines struct {
	*driver.Background
	catalog *catalog.Catalog
	// models, while a test holds it for writing, delays the requests to models.
	models *sync.RWMutex
}

func (d testMachines) Entries() []*catalog.MachineEntry { return d.catalog.Snapshot().Machines() }

func (d testMachines) Entry(name string) (*catalog.MachineEntry, error) {
	return d.catalog.Snapshot().Machine(name)
}

func (d testMachines) Machine(_ context.Context, name string) (*machinedef.Definition, error) {
	e, err := d.Entry(name)
	if err != nil {
		return nil, err
	}
	return e.Definition, nil
}

// Call stores the model's answer as reply, in place of the machine's script.
func (d testMachines) Call(_ context.Context, c driver.HandlerCall) (*driver.HandlerResult, error) {
	r, err := llm.ReadCompletion(c.This.Last)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r.Message.Content)
	data := maps.Clone(c.This.Data)
	data["reply"] = text
	return &driver.HandlerResult{Data: data}, err
}

func (d testMachines) Model(driver.RunScope, machinedef.Level, string) (driver.SelectedModel, error) {
	d.models.RLock()
	defer d.models.RUnlock()
	s, err := scripted.Parse([]byte(`{"rules":[{"when":{"agent":"writer"},"content":"Certainly, at once."}]}`))
	return driver.SelectedModel{Model: scripted.New(s), Name: "scripted"}, err
}

// newTestMachines returns testMachines with the machine "desk" and a machine that does not
// load.
func newTestMachines(t *testing.T) testMachines {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"desk.json": deskMachine, "roles.json": `{"writer":{"systemMessage":"Write."}}`, "desk/script.js": `export default { keep() {} };`,
		"desk/recording.json": `{"inputs":{"request":"a demo"},"rules":[]}`, "broken.json": `{"workflow_name":"broken","states":[]}`,
	} {
		path := filepath.Join(dir, "machines", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := testMachines{models: &sync.RWMutex{}, catalog: catalog.New([]catalog.Source{catalog.NewDir(catalog.SourceInfo{Name: "test", Location: dir}, catalog.DirOptions{})}, catalog.Options{})}
	if err := d.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	journal := openStore(t, filepath.Join(dir, "machines.db"))
	s, err := driver.New(driver.Options{
		Journal: journal, Store: journal, Schedule: true, Key: run.Key(strings.Repeat("k", run.KeySize)), Machines: d, Handlers: d, Models: d,
		Shares: run.Shares{{Project: projectA, Members: []string{"olga", "vic", "otto", "ada"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Background = driver.NewBackground(s, 10, nil)
	t.Cleanup(d.Close)
	return d
}

// machineAnswer is the part of a command's answer that the test reads.
type machineAnswer struct{ Run driver.Status }

// waitForRest waits until a run pauses or ends.
func (s *rig) waitForRest(t *testing.T, id string) driver.Status {
	t.Helper()
	st, err := s.machines.Wait(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, id, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return *st
}

// The list of machines includes those that do not load.
func TestMachines(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	var list struct {
		Machines []struct {
			Name, Error string
			Demo        bool
			Inputs      []struct{ Name string }
		}
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/machines", "").decodeInto(t, &list)
	if len(list.Machines) != 2 || list.Machines[0].Error == "" || list.Machines[1].Name != "desk" || !list.Machines[1].Demo || len(list.Machines[1].Inputs) != 1 {
		t.Errorf("the list is %+v", list)
	}
	var details struct {
		Ways   []struct{ From, To string }
		Source string
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/machines/desk", "").decodeInto(t, &details)
	if details.Source != deskMachine || len(details.Ways) != 2 {
		t.Errorf("the machine is %+v", details)
	}
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/machines/none", "")
	s.wantStatus(t, 422, asAgent, "GET", "/api/machines/broken", "")
}

// A run starts and waits for a person. An answer with an agent's token is refused, and an
// answer from a browser is accepted. The run ends and is forked, and its events are
// returned in pages. Other users cannot see the run.
func TestMachineRuns(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, person := s.loginBrowser(t, "ann")
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/machine-runs", `{}`)
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", "/api/machine-runs", `{"machine":"desk"}`)
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "POST", "/api/machine-runs", `{"machine":"none"}`)
	var got machineAnswer
	s.wantStatus(t, 201, asAgent, "POST", "/api/machine-runs", `{"machine":"desk","demo":true,"goal":"try"}`).decodeInto(t, &got)
	at := "/api/machine-runs/" + got.Run.RunID
	st := s.waitForRest(t, got.Run.RunID)
	if st.Status != "waiting" || !st.Asks.Person {
		t.Fatalf("the run is %+v", st)
	}
	answer := func(value string) string { return `{"question":"` + st.Question + `","value":"` + value + `"}` }
	var details struct{ Data map[string]any }
	s.wantStatus(t, 200, asAgent, "GET", at, "").decodeInto(t, &details)
	if details.Data["request"] != "a demo" {
		t.Errorf("the first event of the demonstration is %v", details.Data)
	}
	s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", at+"/input", `{"value":"yes"}`)
	s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", at+"/resume", `{"acceptTools":true}`)
	s.wantStatus(t, 200, person, "POST", at+"/resume", `{"acceptTools":true}`)
	s.wantCode(t, 400, guideway.CodeInvalid, person, "POST", at+"/input", answer("perhaps"))
	s.wantCode(t, 409, guideway.CodeRefused, person, "POST", at+"/input", `{"value":"yes"}`)
	s.wantStatus(t, 200, person, "POST", at+"/input", answer("yes"))
	if st := s.waitForRest(t, got.Run.RunID); st.Status != "completed" || string(st.Output) != `"Certainly, at once."` {
		t.Errorf("the completed run is %+v", st)
	}
	s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", at+"/resume", `{}`)
	s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", at+"/cancel", `{}`)
	s.wantCode(t, 400, guideway.CodeInvalid, asAgent, "POST", at+"/resume", `{"states":-1}`)
	var page struct {
		Events    []run.Event
		NextAfter int64
	}
	s.wantStatus(t, 200, asAgent, "GET", at+"/events?limit=3", "").decodeInto(t, &page)
	if len(page.Events) != 3 || page.NextAfter != 3 {
		t.Errorf("a page is %+v", page)
	}
	var fork machineAnswer
	s.wantStatus(t, 201, asAgent, "POST", at+"/fork", `{"seq":3}`).decodeInto(t, &fork)
	if st := s.waitForRest(t, fork.Run.RunID); st.Status != "waiting" || st.Parent != got.Run.RunID {
		t.Errorf("the fork is %+v", st)
	}
	s.wantStatus(t, 200, asAgent, "POST", "/api/machine-runs/"+fork.Run.RunID+"/cancel", `{"reason":"enough"}`)
	s.wantStatus(t, 201, asAgent, "POST", at+"/fork", `{}`).decodeInto(t, &fork)
	if st := s.waitForRest(t, fork.Run.RunID); st.Status != "waiting" || !st.Asks.Person {
		t.Errorf("an agent's fork of the approved run is %+v", st)
	}
	s.wantStatus(t, 200, person, "POST", "/api/machine-runs/"+fork.Run.RunID+"/cancel", `{}`)
	s.wantCode(t, 409, guideway.CodeRefused, asAgent, "POST", "/api/machine-runs/"+fork.Run.RunID+"/fork", `{}`)
	var list struct{ Runs []struct{ RunID string } }
	s.wantStatus(t, 200, asAgent, "GET", "/api/machine-runs?machine=desk", "").decodeInto(t, &list)
	if len(list.Runs) != 3 {
		t.Errorf("the list is %+v", list)
	}
	_, other := s.loginBrowser(t, "ben")
	for _, path := range []string{"", "/events", "/stream"} {
		s.wantCode(t, 404, guideway.CodeNotFound, other, "GET", at+path, "")
	}
	for _, path := range []string{"/input", "/resume", "/cancel", "/fork"} {
		s.wantCode(t, 404, guideway.CodeNotFound, other, "POST", at+path, `{}`)
	}
}

// The stream of a run reports its status and the text of its agents as it arrives.
func TestMachineStream(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	// No text arrives before the reader is connected.
	s.machines.models.Lock()
	answer := sync.OnceFunc(s.machines.models.Unlock)
	defer answer()
	st, err := s.machines.Service.Start(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, driver.StartRequest{
		Machine: "desk", Inputs: map[string]json.RawMessage{"request": json.RawMessage(`"x"`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/machine-runs/"+st.RunID+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	asAgent(r)
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var kinds []string
	name, text := "", ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		line := lines.Text()
		if after, ok := strings.CutPrefix(line, "event: "); ok {
			name = after
			kinds = append(kinds, name)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if len(kinds) == 1 && name == "status" {
			answer()
			s.waitForRest(t, st.RunID)
		}
		var got struct{ Text, Status string }
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			t.Fatal(err)
		}
		if text += got.Text; got.Status == "waiting" {
			break
		}
	}
	if text != "Certainly, at once." || !slices.Contains(kinds, "delta") {
		t.Errorf("the stream has the text %q, in events %v", text, kinds)
	}
}
