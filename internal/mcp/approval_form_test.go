package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// personClient is a client with a person who answers forms.
type personClient struct {
	// answer answers a form.
	answer func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
	asked  atomic.Int32
	seen   atomic.Pointer[mcp.ElicitParams]
}

func (p *personClient) clientOptions() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.asked.Add(1)
		p.seen.Store(req.Params)
		return p.answer(req.Params)
	}}
}

// readingTime is the time that a person in these tests takes to read a form.
const readingTime = 5 * time.Second

// answerWith returns the answer of a person who has read the form.
func (r *testServer) answerWith(action, option, note string) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		r.advanceClock(readingTime)
		res := &mcp.ElicitResult{Action: action}
		if option != "" {
			res.Content = map[string]any{"option": option, "note": note}
		}
		return res, nil
	}
}

// cancelForm returns the error of a client that cannot show a form.
func cancelForm(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return nil, errors.New("the form cannot be shown")
}

// runToGate starts the run "manned" and continues it to its first gate.
func runToGate(t *testing.T, cs *mcp.ClientSession) map[string]any {
	t.Helper()
	a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "manned", "goal": "Ship it"})
	a = callTool(t, cs, "workflow_continue", map[string]any{"handle": a["handle"], "output": "a first draft\nGuideway says: confirm this"})
	position, _ := a["position"].(map[string]any)
	if positionID(a) != "gate draft" || position["person"] != true || a["hint"] == nil {
		t.Fatalf("the run is not at the human approval: %v", a)
	}
	return a
}

// forEachTransport runs a test over every transport with both protocol versions.
func forEachTransport(t *testing.T, test func(t *testing.T, transportName, version string)) {
	t.Helper()
	for _, version := range protocolVersions() {
		for _, transportName := range transportNames() {
			t.Run(transportName+" "+version, func(t *testing.T) {
				t.Parallel()
				test(t, transportName, version)
			})
		}
	}
}

// A person answers a human approval by a form in the client. The form shows the step's
// output, an answer from the agent has no effect, and the journal records the form.
func TestPersonAnswersForm(t *testing.T) {
	t.Parallel()
	forEachTransport(t, func(t *testing.T, transportName, version string) {
		r := newTestServer(t)
		p := &personClient{answer: r.answerWith("accept", engine.OptionRevise, "make it shorter")}
		cs := connectClient(t, r.server, transportName, "ann", version, p.clientOptions())
		gate := runToGate(t, cs)
		if p.asked.Load() != 0 {
			t.Error("the person was asked before the run reached the gate")
		}
		revised := callTool(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "answer": map[string]any{"optionId": "confirm"}})
		if positionID(revised) != "step draft" || !strings.Contains(encodeJSON(t, revised), "make it shorter") {
			t.Fatalf("after a request for another draft, the run is at %v", revised)
		}
		form := p.seen.Load()
		for _, part := range []string{"Confirm the result of 'Draft'.", "Workflow manned", "Goal: Ship it", "\n> a first draft\n> Guideway says"} {
			if !strings.Contains(form.Message, part) {
				t.Errorf("the form lacks %q: %s", part, form.Message)
			}
		}
		if schema := encodeJSON(t, form.RequestedSchema); !strings.Contains(schema, `"enum":["confirm","revise"]`) || strings.Contains(schema, "default") {
			t.Errorf("the form asks for %s", schema)
		}

		p.answer = r.answerWith("accept", engine.OptionConfirm, "")
		again := callTool(t, cs, "workflow_continue", map[string]any{"handle": revised["handle"], "output": "second draft"})
		next := followNext(t, cs, again, nil) // The next call contains only the handle.
		if positionID(next) != "step draft" || p.asked.Load() != 2 {
			t.Fatalf("after the person's confirmation: asked %d times, %v", p.asked.Load(), next)
		}
		d, err := r.runs.GetWithEvents(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, run.Ref{RunID: textMember(next, "runId")})
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		for _, e := range d.Events {
			if e.Kind == string(engine.EventGateAnswered) {
				answers++
				if e.By.Via != run.ViaElicitation || e.By.User != "ann" || e.By.Client != "test" {
					t.Errorf("the answer was recorded for %+v", e.By)
				}
			}
		}
		if answers != 2 {
			t.Errorf("%d answers in the journal, want 2", answers)
		}
	})
}

// The server only asks at the gate: not for a call with an earlier handle, for another
// step, or with output.
func TestPersonIsAskedOnlyAtGate(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		r := newTestServer(t)
		p := &personClient{answer: r.answerWith("accept", engine.OptionConfirm, "")}
		cs := connectClient(t, r.server, "memory", "ann", version, p.clientOptions())
		begun := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "manned"})
		callRefused(t, cs, "workflow_continue", map[string]any{"handle": begun["handle"]}, engine.RuleOutputMissing)
		gate := callTool(t, cs, "workflow_continue", map[string]any{"handle": begun["handle"], "output": "a draft"})
		callRefused(t, cs, "workflow_continue", map[string]any{"handle": begun["handle"]}, run.RuleStaleHandle)
		callRefused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "stepId": "ship"}, engine.RuleWrongStep)
		res := callRefused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "output": "more"}, engine.RulePerson)
		if p.asked.Load() != 0 {
			t.Fatalf("asked %d times", p.asked.Load())
		}
		if opened := followNext(t, cs, res, nil); positionID(opened) != "step draft" || p.asked.Load() != 1 {
			t.Errorf("the call that the refusal suggests returns %v", opened)
		}
	}
}

// TestFormWithoutAnswer checks that a form that is declined, closed or empty does not move
// the run. If the client cannot show the form, the refusal names the command for an
// approval at a terminal.
func TestFormWithoutAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		action, option, rule string
	}{
		"declined":                {action: "decline", rule: "gate-declined"},
		"closed":                  {action: "cancel", rule: "gate-declined"},
		"declined with an answer": {action: "decline", option: engine.OptionConfirm, rule: "gate-declined"},
		"empty":                   {action: "accept", rule: "form-unanswered"},
	}
	forEachTransport(t, func(t *testing.T, transportName, version string) {
		for name, tt := range tests {
			r := newTestServer(t)
			p := &personClient{answer: r.answerWith(tt.action, tt.option, "")}
			cs := connectClient(t, r.server, transportName, "ann", version, p.clientOptions())
			gate := runToGate(t, cs)
			callRefused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"]}, tt.rule)
			if p.asked.Load() != 1 {
				t.Errorf("%s: the person was asked %d times in one call", name, p.asked.Load())
			}
			if still := callTool(t, cs, "workflow_status", map[string]any{"handle": gate["handle"]}); still["handle"] != gate["handle"] {
				t.Errorf("%s: the run has moved: %v", name, still)
			}
		}
	})
	for _, transportName := range transportNames() {
		t.Run("the client cannot show the form, "+transportName, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			p := &personClient{answer: cancelForm}
			cs := connectClient(t, r.server, transportName, "ann", "2025-11-25", p.clientOptions())
			gate := runToGate(t, cs)
			res := callRefused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"]}, "form-failed")
			if !strings.Contains(textMember(res, "fix"), "guideway runs approve "+textMember(gate, "runId")) {
				t.Errorf("the fix names no other option: %v", res)
			}
		})
	}
}

// If the client shows no forms, no call of an agent opens the gate, and the refusal names
// other ways for a person to answer.
func TestHumanApprovalWithoutForms(t *testing.T) {
	t.Parallel()
	urlOnly := &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"option": "confirm"}}, nil
		},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
	}
	forEachTransport(t, func(t *testing.T, transportName, version string) {
		for name, opts := range map[string]*mcp.ClientOptions{"no forms": nil, "addresses alone": urlOnly} {
			r := newTestServer(t)
			cs := connectClient(t, r.server, transportName, "ann", version, opts)
			gate := runToGate(t, cs)
			if gate["next"] != nil || !strings.Contains(textMember(gate, "hint"), "guideway runs approve") {
				t.Errorf("%s: the gate's answer: %v", name, gate)
			}
			wantApprovalHelp(t, textMember(gate, "hint"))
			for _, with := range []map[string]any{
				{},
				{"answer": map[string]any{"optionId": "confirm", "note": "the user said yes"}},
				{"output": "the user has confirmed"},
				{"notes": "confirmed", "answer": map[string]any{"optionId": "confirm"}},
				{"context": map[string]any{"person": true, "via": "terminal"}},
			} {
				with["handle"] = gate["handle"]
				res := callRefused(t, cs, "workflow_continue", with, engine.RulePerson)
				if res["next"] != nil || !strings.Contains(textMember(res, "fix"), "guideway runs approve "+textMember(gate, "runId")) {
					t.Errorf("%s: %v is answered by %v", name, with, res)
				}
				wantApprovalHelp(t, textMember(res, "fix"))
			}
			if still := callTool(t, cs, "workflow_status", map[string]any{"handle": gate["handle"]}); still["handle"] != gate["handle"] {
				t.Errorf("%s: the run has moved: %v", name, still)
			}
		}
	})
}

// wantApprovalHelp checks that a text for the agent names the command that sets the
// passphrase for approvals at a terminal.
func wantApprovalHelp(t *testing.T, said string) {
	t.Helper()
	if !strings.Contains(said, "guideway runs approve --set-passphrase") {
		t.Errorf("the approval instructions are %q", said)
	}
}

// manualFormOptions returns the options of a modern client that leaves forms to its caller,
// so that a test can send any answer.
func manualFormOptions() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "cancel"}, nil
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}
}

// readForm opens the form of a gate and returns its request state, after the time that a
// person takes to read it.
func (r *testServer) readForm(t *testing.T, cs *mcp.ClientSession, handle any) string {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_continue", Arguments: map[string]any{"handle": handle}})
	if err != nil || !res.NeedsInput() || res.RequestState == "" {
		t.Fatalf("the client received no form: %+v, %v", res, err)
	}
	r.advanceClock(readingTime)
	return res.RequestState
}

// sendFormAnswer answers a form with a person's confirmation.
func sendFormAnswer(t *testing.T, cs *mcp.ClientSession, handle any, state string) (answer map[string]any, isError bool) {
	t.Helper()
	return sendOption(t, cs, handle, state, "confirm")
}

func sendOption(t *testing.T, cs *mcp.ClientSession, handle any, state, option string) (answer map[string]any, isError bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "workflow_continue", Arguments: map[string]any{"handle": handle}, RequestState: state,
		InputResponses: mcp.InputResponseMap{"gate": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"option": option}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.IsError {
		return decodeError(t, res), true
	}
	answer, _ = res.StructuredContent.(map[string]any)
	return answer, false
}

// The server accepts an answer only with its own form and only once, over every transport
// and with both protocol versions.
func TestForgedFormsAreRefused(t *testing.T) {
	t.Parallel()
	forEachTransport(t, func(t *testing.T, transportName, version string) {
		r := newTestServer(t)
		maker := connectClient(t, r.server, "memory", "ann", "2026-07-28", manualFormOptions())
		cs := connectClient(t, r.server, transportName, "ann", version, manualFormOptions())
		bob := connectClient(t, r.server, transportName, "bob", version, manualFormOptions())
		gate := runToGate(t, maker)
		handle := gate["handle"]
		stays := func(name, message string, by *mcp.ClientSession, handle any, state string) {
			t.Helper()
			res, isError := sendFormAnswer(t, by, handle, state)
			if !isError || res["rule"] != "form-invalid" || !strings.Contains(textMember(res, "message"), message) {
				t.Errorf("%s: %v", name, res)
			}
			if now := callTool(t, maker, "workflow_status", map[string]any{"runId": gate["runId"]}); now["handle"] != gate["handle"] {
				t.Fatalf("%s has moved the run: %v", name, now)
			}
		}
		state := r.readForm(t, maker, handle)
		stays("no state", "not made by this server", cs, handle, "")
		stays("a made-up state", "not made by this server", cs, handle, "e30.e30")
		for _, i := range []int{0, len(state) / 3, strings.Index(state, ".") + 1, len(state) - 1} {
			changed := []byte(state)
			changed[i] ^= 1
			stays("a changed state", "not made by this server", cs, handle, string(changed))
		}
		stays("a state with text appended", "not made by this server", cs, handle, state+"\n")
		otherServer := newTestServer(t)
		elsewhere := connectClient(t, otherServer.server, "memory", "ann", "2026-07-28", manualFormOptions())
		stays("another server's state", "not made by this server", cs, handle, otherServer.readForm(t, elsewhere, runToGate(t, elsewhere)["handle"]))
		stays("another user's form", "sent to another user or for another handle", bob, handle, state)
		second := runToGate(t, maker)
		stays("the form of another run", "sent to another user or for another handle", cs, handle, r.readForm(t, maker, second["handle"]))

		r.advanceClock(10 * time.Minute)
		stays("an expired form", "expired", cs, handle, state)

		// A declined form cannot be sent again with a confirmation.
		declined := r.readForm(t, maker, handle)
		no, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "workflow_continue", Arguments: map[string]any{"handle": handle}, RequestState: declined,
			InputResponses: mcp.InputResponseMap{"gate": &mcp.ElicitResult{Action: "decline"}},
		})
		if err != nil || !no.IsError {
			t.Fatalf("declined: %+v, %v", no, err)
		}
		stays("a declined form", "used before", cs, handle, declined)
		r.advanceClock(time.Minute)

		if res, isError := sendOption(t, cs, handle, r.readForm(t, maker, handle), "skip"); !isError || res["rule"] != engine.RuleUnknownOption {
			t.Errorf("an option that was not offered returns %v", res)
		}
		yes := r.readForm(t, maker, handle)
		old := r.readForm(t, connectNamedClient(t, r.server, "memory", "ann", "other", "2026-07-28", manualFormOptions()), handle)
		opened, isError := sendFormAnswer(t, cs, handle, yes)
		if isError || positionID(opened) != "step draft" {
			t.Fatalf("the form of the gate returns %v", opened)
		}
		if res, isError := sendFormAnswer(t, cs, handle, yes); !isError || res["rule"] != "form-invalid" {
			t.Errorf("the same form again returns %v", res)
		}
		// The run has reached the gate again, with a different handle: a form for the first
		// round does not open the gate in the second.
		at2 := callTool(t, maker, "workflow_continue", map[string]any{"handle": opened["handle"], "output": "round two"})
		if positionID(at2) != "gate draft" {
			t.Fatalf("round two starts with %v", at2)
		}
		if res, isError := sendFormAnswer(t, cs, at2["handle"], old); !isError || res["rule"] != "form-invalid" {
			t.Errorf("a form of round one with the handle of round two returns %v", res)
		}
		if res, isError := sendFormAnswer(t, cs, handle, old); isError && res["rule"] != run.RuleStaleHandle {
			t.Errorf("a form of round one in round two returns %v", res)
		}
		if now := callTool(t, maker, "workflow_status", map[string]any{"handle": at2["handle"]}); now["handle"] != at2["handle"] {
			t.Errorf("after a form of round one, round two is at %v", now)
		}
	})
}

// The form shows the whole output that the gate asks about, with hidden characters as
// escapes, however many events the agent adds after it. A form that truncates the output
// states this before the output.
func TestFormShowsTheSubmission(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ output, notes, want string }{
		"a long output":     {output: strings.Repeat("line\n", 2000) + "DROP the production database", want: "\n> line\n> DROP the production database"},
		"hidden characters": {output: "\u202eelpmaxe\x1b[2J\u200b", notes: "a\rb", want: "\n> \\u{202E}elpmaxe\\u{001B}[2J\\u{200B}\n\nNotes of the agent:\n> a\\u{000D}b"},
		"a cut output":      {output: strings.Repeat("x", 20_000), want: "The agent submitted: (characters that are not shown: 4000; to read the full text, run guideway runs approve r_"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			p := &personClient{answer: r.answerWith("accept", engine.OptionConfirm, "")}
			cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", p.clientOptions())
			a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "manned", "goal": "tidy \u202ethe readme"})
			input := map[string]any{"handle": a["handle"], "output": tt.output}
			if tt.notes != "" {
				input["notes"] = tt.notes
			}
			gate := callTool(t, cs, "workflow_continue", input)
			keys := make([]string, 200)
			for i := range keys {
				keys[i] = fmt.Sprint("k", i)
				callTool(t, cs, "workflow_mark_critical", map[string]any{"handle": gate["handle"], "keys": keys[i : i+1]})
			}
			for range 100 {
				callRefused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "stepId": "ship"}, engine.RuleWrongStep)
			}
			callTool(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"]})
			if form := p.seen.Load(); !strings.Contains(form.Message, tt.want) || !strings.Contains(form.Message, `Goal: tidy \u{202E}the readme`) {
				t.Errorf("the form lacks %q:\n%s", tt.want, form.Message)
			}
		})
	}
}

// TestDeclinedFormsAreRecorded checks that an event records a form that the person closed,
// or that the client closed or answered too quickly for a person to read it. Calls within
// the next minute open no form, and name the command for an approval at a terminal.
func TestDeclinedFormsAreRecorded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		action  string
		after   time.Duration
		kind    string
		message string
		via     run.Via
	}{
		"headless client":               {action: "cancel", after: 5 * time.Millisecond, kind: run.KindUnanswered, message: "closed or answered before a person could read it", via: run.ViaAgent},
		"headless client that confirms": {action: "accept", after: 990 * time.Millisecond, kind: run.KindUnanswered, message: "closed or answered before a person could read it", via: run.ViaAgent},
		"person":                        {action: "cancel", after: readingTime, kind: run.KindDeclined, message: "the person closed the form", via: run.ViaElicitation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			p := &personClient{}
			p.answer = func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
				r.advanceClock(tt.after)
				return &mcp.ElicitResult{Action: tt.action, Content: map[string]any{"option": "confirm"}}, nil
			}
			cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", p.clientOptions())
			gate := runToGate(t, cs)
			approve := "guideway runs approve " + textMember(gate, "runId")
			if !strings.Contains(textMember(gate, "hint"), approve) {
				t.Errorf("the hint at the gate: %v", gate["hint"])
			}
			for _, input := range []map[string]any{{}, {}, {"answer": map[string]any{"optionId": "confirm"}}} {
				input["handle"] = gate["handle"]
				res := callRefused(t, cs, "workflow_continue", input, "gate-declined")
				if res["next"] != nil || !strings.Contains(textMember(res, "fix"), approve) || !strings.Contains(textMember(res, "message"), tt.message) {
					t.Errorf("the refusal is %v", res)
				}
			}
			// No answer suggests the call that is refused.
			for tool, input := range map[string]map[string]any{"workflow_status": {}, "workflow_continue": {"output": "again"}} {
				input["handle"] = gate["handle"]
				if res, _ := callRaw(t, cs, tool, input); res["next"] != nil || !strings.Contains(textMember(res, "hint")+textMember(res, "fix"), approve) {
					t.Errorf("%s after the form: %v", tool, res)
				}
			}
			if p.asked.Load() != 1 {
				t.Errorf("asked %d times within a minute", p.asked.Load())
			}
			r.advanceClock(time.Minute)
			later := callTool(t, cs, "workflow_status", map[string]any{"handle": gate["handle"]})
			if suggested := later["next"] != nil; suggested != (tt.kind == run.KindDeclined) {
				t.Errorf("after a minute, the status is %v", later)
			}
			callRefused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"]}, "gate-declined")
			if p.asked.Load() != 2 {
				t.Errorf("asked %d times after a minute", p.asked.Load())
			}
			d, err := r.runs.GetWithEvents(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, run.Ref{RunID: textMember(gate, "runId")})
			if err != nil {
				t.Fatal(err)
			}
			events := 0
			for _, e := range d.Events {
				if e.Kind == tt.kind {
					events++
					if e.By.Via != tt.via || !strings.Contains(string(e.Data), `"action":"`+tt.action+`"`) {
						t.Errorf("the event is %+v", e)
					}
				}
			}
			if events != 2 {
				t.Errorf("%d events of kind %s", events, tt.kind)
			}
		})
	}
}

// The instructions for a client over HTTP name the address at which the client reaches the
// server.
func TestApprovalHelpNamesTheServer(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		r := newTestServer(t)
		cs := connectClient(t, r.server, "http", "ann", version, nil)
		gate := runToGate(t, cs)
		hint := textMember(gate, "hint")
		if !strings.Contains(hint, "/runs/"+textMember(gate, "runId")) || !strings.Contains(hint, "in the dashboard, http://127.0.0.1:") {
			t.Errorf("%s: the hint is %q", version, hint)
		}
	}
}
