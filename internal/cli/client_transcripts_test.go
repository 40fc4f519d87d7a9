package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/rogpeppe/go-internal/txtar"
)

// clientProfile is the behavior of a client. The files in testdata/clients have the
// messages that the programs sent to Guideway, with NAME, ARGUMENTS, ID, QUESTION and STATE
// instead of the parts that differ from call to call, and the headers that they send over
// HTTP.
type clientProfile struct {
	name     string
	parts    map[string]string
	settings map[string]string
}

func readClientProfile(t *testing.T, file string) *clientProfile {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &clientProfile{name: strings.TrimSuffix(filepath.Base(file), ".txtar"), parts: map[string]string{}, settings: map[string]string{}}
	for _, f := range archive.Files {
		p.parts[f.Name] = strings.TrimSpace(string(f.Data))
	}
	for line := range strings.Lines(p.parts["client"]) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		p.settings[name] = value
	}
	return p
}

// modern reports whether the client uses a modern protocol version. Such a client repeats a
// call with the answer to a form.
func (p *clientProfile) modern() bool { return p.settings["version"] >= "2026-07-28" }

// upload is a workflow with every kind of position: a step with a criterion, a gate that the
// user answers, a variable that the agent sets, and a gate that only a person opens.
const upload = `{"id": "upload", "name": "Upload", "description": "A change with a plan, a decision and a release.", "version": "1.0.0", "steps": [
	{"id": "plan", "title": "Plan", "prompt": "Write the plan.",
		"validationCriteria": [{"type": "contains", "value": "Plan:", "message": "Begin with Plan:."}]},
	{"id": "agree", "title": "Agree", "prompt": "Show the plan.", "requireConfirmation": true},
	{"id": "split", "title": "Split", "prompt": "Split it.", "runCondition": {"var": "size", "equals": "large"}},
	{"id": "ship", "title": "Ship", "prompt": "Ship it.", "requireConfirmation": true, "approval": "human"}]}`

// conversation is a client with its model, during one run.
type conversation struct {
	*testing.T
	profile *clientProfile
	wire    wire
	home    string
	// page is the address of the dashboard, if the client knows it.
	page string
	// person reports whether a person answers the client's forms. If not, the client closes
	// them.
	person bool
	// id is the id of the last request.
	id int
	// forms are the texts of the forms that the client was asked to show.
	forms []string
	// moves are the positions that the model saw, and the rules of refusals.
	moves []string
	// log has the calls and their results, without the ids of this run. sent is the size of
	// all texts, and shown the size of the texts that the model reads.
	log         strings.Builder
	sent, shown int
}

// Each client completes a run, as it did when its messages were recorded: over stdio and,
// if it was recorded, over HTTP. The client's model reads only what the client shows, and
// fills in the fields of the forms that it reads. At a human approval, a client without a
// person closes the form immediately; the person then opens the gate at a terminal.
func TestClientTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/clients/*.txtar")
	if err != nil || len(files) != 8 {
		t.Fatalf("the clients: %v, %v", files, err)
	}
	for _, file := range files {
		p := readClientProfile(t, file)
		connect := map[string]bool{"stdio": false}
		if p.parts["first"] != "" {
			connect["http"] = false
		}
		if p.parts["form"] != "" {
			connect["stdio with a person"] = true
		}
		for name, person := range connect {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := &conversation{T: t, profile: p, home: t.TempDir(), id: 100, person: person}
				writeFile(t, filepath.Join(c.home, ".guideway", "workflows", "upload.json"), upload)
				if name == "http" {
					w := connectHTTP(t, c.home, p)
					c.wire, c.page = w, w.page
				} else {
					c.wire = connectStdio(t, c.home)
				}
				c.shakeHands()
				c.followWorkflow()
				c.wire.end()
				if name == "stdio" {
					head := fmt.Sprintf("%d bytes of text sent, %d bytes shown to the model\n", c.sent, c.shown)
					compareTranscript(t, filepath.Join("testdata", "transcript", "clients", p.name+".txt"), head+c.log.String())
				}
			})
		}
	}
}

// followWorkflow acts as a model that reads the answers: it finds the workflow, starts
// it, and continues until the run is completed.
func (c *conversation) followWorkflow() {
	if seen := c.callTool("workflow_list", map[string]any{}); !strings.Contains(seen.text, "upload") {
		c.Fatalf("the list of workflows is %s", seen.text)
	}
	seen := c.callTool("workflow_start", map[string]any{"workflowId": "upload", "goal": "upload files again after an error"})
	runID := regexp.MustCompile(`r_[0-9a-z]{23}`).FindString(seen.text)
	for range 12 {
		c.moves = append(c.moves, seen.move())
		switch {
		case seen.kind == "end":
			c.checkMoves(runID)
			return
		case seen.next != nil:
			seen = c.callTool(seen.next.Tool, c.fillForm(seen))
		default:
			seen = c.openGate(seen, runID)
		}
	}
	c.Fatalf("no end: %q", c.moves)
}

// openGate lets the person open a gate in the way that the answer names.
func (c *conversation) openGate(seen reading, runID string) reading {
	c.Helper()
	wanted := []string{"guideway runs approve " + runID}
	if c.page != "" {
		wanted = append(wanted, c.page+"/runs/"+runID)
	}
	for _, words := range wanted {
		if !strings.Contains(seen.text, words) {
			c.Errorf("the answer at the gate does not name %q: %s", words, seen.text)
		}
	}
	// While the gate waits for a person, the status suggests no call, so that the agent
	// does not repeat the refused call.
	waiting := c.callTool("workflow_status", map[string]any{"runId": runID})
	if waiting.next != nil || waiting.kind != "gate" {
		c.Errorf("the status at the gate suggests a call: %s", waiting.text)
	}
	for _, step := range []struct {
		command string
		typed   []string
	}{
		{"runs approve --set-passphrase", []string{personsWords, personsWords}},
		{"runs approve " + runID, []string{personsWords, "1"}},
	} {
		host, out := newTerminal(c.T, nil)
		in := &fakeTerminal{lines: step.typed, echo: out}
		host.In, host.Dir = in, c.home
		env := personalDirectories(c.home)
		host.Getenv = func(name string) string { return env[name] }
		typeSecrets(&host, in)
		if code := Run(c.Context(), strings.Fields(step.command), host); code != app.ExitOK {
			c.Fatalf("%s: %s", step.command, out)
		}
	}
	return c.callTool("workflow_status", map[string]any{"runId": runID})
}

// checkMoves checks that the model saw the positions of the workflow, and that the form
// shows the output that it asks about.
func (c *conversation) checkMoves(runID string) {
	want := []string{"step plan", "criteria-failed", "step agree", "gate agree", "context split", "step ship", "gate ship"}
	asks := c.profile.parts["form"] != ""
	if asks && !c.person {
		want = append(want, "gate-declined")
	}
	if d := cmp.Diff(append(want, "end"), c.moves); d != "" {
		c.Errorf("the positions of %s (-want +got):\n%s", runID, d)
	}
	if asks && (len(c.forms) != 1 || !strings.Contains(c.forms[0], "shipped to all")) || !asks && c.forms != nil {
		c.Errorf("the forms are %q", c.forms)
	}
}

// fillForm returns the arguments of the next call with a value for each field. The first
// output does not meet the criterion.
func (c *conversation) fillForm(seen reading) map[string]any {
	c.Helper()
	args := maps.Clone(seen.next.Arguments)
	filled := 0
	for _, field := range seen.next.Fields {
		if field.Optional {
			continue
		}
		filled++
		value, known := map[string]any{
			"plan output": "did it", "criteria-failed output": "Plan: count, then upload.", "agree output": "The plan was shown.",
			"agree answer.optionId": "confirm", "split context.size": "small", "ship output": "shipped to all",
		}[seen.at()+" "+field.Name]
		if !known || field.Choices != nil && !slices.Contains(field.Choices, value) {
			c.Fatalf("no value for the field %q at %s: %s", field.Name, seen.at(), seen.text)
		}
		if object, name, nested := strings.Cut(field.Name, "."); nested {
			args[object] = map[string]any{name: value}
		} else {
			args[field.Name] = value
		}
	}
	if asksPerson := seen.move() == "gate ship" && c.profile.parts["form"] != ""; (filled == 0) != asksPerson {
		c.Fatalf("%d fields at %s: %s", filled, seen.move(), seen.text)
	}
	return args
}

// callTool calls a tool as the client does, and returns what its model reads.
func (c *conversation) callTool(tool string, arguments map[string]any) reading {
	c.Helper()
	result := c.exchangeCall("call", tool, arguments, "")
	var asked struct {
		InputRequests map[string]struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		} `json:"inputRequests"`
		RequestState string `json:"requestState"`
	}
	if err := json.Unmarshal(result, &asked); err != nil {
		c.Fatal(err)
	}
	if len(asked.InputRequests) > 0 {
		c.answerForm(message{Method: asked.InputRequests["gate"].Method, Params: asked.InputRequests["gate"].Params})
		result = c.exchangeCall("form", tool, arguments, asked.RequestState)
	}
	seen, err := c.profile.read(result)
	if err != nil {
		c.Fatalf("%s: %v: %s", tool, err, result)
	}
	c.recordCall(tool, arguments, result, seen)
	return seen
}

// recordCall adds a call to the log. The list of workflows is left out, because it changes
// with the bundled ones.
func (c *conversation) recordCall(tool string, arguments map[string]any, result json.RawMessage, seen reading) {
	c.Helper()
	if tool == "workflow_list" {
		return
	}
	args, err := json.Marshal(arguments)
	var sent struct{ Content []struct{ Text string } }
	if err = errors.Join(err, json.Unmarshal(result, &sent)); err != nil {
		c.Fatal(err)
	}
	c.sent += len(sent.Content[0].Text)
	c.shown += len(seen.text)
	ids := regexp.MustCompile(`\b([hr])_[0-9a-z]{21,23}\b`)
	fmt.Fprintf(&c.log, "> %s %s\n< %s\n", tool, ids.ReplaceAllString(string(args), "${1}_ID"), ids.ReplaceAllString(string(result), "${1}_ID"))
}

func (c *conversation) exchangeCall(section, tool string, arguments map[string]any, state string) json.RawMessage {
	c.Helper()
	c.id++
	id := fmt.Sprint(c.id)
	text, err := json.Marshal(arguments)
	if err != nil {
		c.Fatal(err)
	}
	replace := strings.NewReplacer("NAME", tool, "ARGUMENTS", string(text), "ID", id, "STATE", state)
	frame := replace.Replace(c.profile.parts[section])
	if c.person {
		frame = acceptForm(frame)
	}
	answers := c.wire.exchange([]string{frame}, c.answerForm)
	if after := c.profile.parts["after"]; after != "" {
		c.wire.exchange([]string{replace.Replace(after)}, c.answerForm)
	}
	return answers[id]
}

// answerForm records a form, and returns the client's answer to it. It answers a request for
// the roots as the clients do.
func (c *conversation) answerForm(m message) string {
	if m.Method == "roots/list" {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file://%s"}]}}`, m.ID, filepath.ToSlash(c.home))
	}
	var params struct {
		Message string `json:"message"`
		Schema  struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		} `json:"requestedSchema"`
	}
	err := json.Unmarshal(m.Params, &params)
	if err != nil || m.Method != "elicitation/create" || params.Schema.Type != "object" || params.Schema.Properties["option"] == nil {
		c.Errorf("the form is %s %s: %v", m.Method, m.Params, err)
	}
	c.forms = append(c.forms, params.Message)
	reply := strings.ReplaceAll(c.profile.parts["form"], "QUESTION", string(m.ID))
	if c.person {
		// The person reads the form for five seconds by the clock of the process.
		writeFile(c.T, clockFile(c.home), "5s")
		reply = acceptForm(reply)
	}
	return reply
}

// acceptForm returns the recorded answer of a client that closes a form, changed to the
// answer of a person who confirms.
func acceptForm(frame string) string {
	return regexp.MustCompile(`\{"action":"(cancel|decline)"\}`).ReplaceAllString(frame, `{"action":"accept","content":{"option":"confirm"}}`)
}
