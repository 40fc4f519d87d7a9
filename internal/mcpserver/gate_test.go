package mcpserver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// person is somebody at a client that shows forms.
type person struct {
	// answer is what they do with a form.
	answer func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
	asked  atomic.Int32
	seen   atomic.Pointer[mcp.ElicitParams]
}

func (p *person) options() *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		p.asked.Add(1)
		p.seen.Store(req.Params)
		return p.answer(req.Params)
	}}
}

func answering(action, option, note string) func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		res := &mcp.ElicitResult{Action: action}
		if option != "" {
			res.Content = map[string]any{"option": option, "note": note}
		}
		return res, nil
	}
}

// acting is how the test itself would fail if a person were asked.
func acting(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return nil, errors.New("this person cannot be asked")
}

// toGate begins the run "manned" and takes it to its first gate.
func toGate(t *testing.T, cs *mcp.ClientSession) map[string]any {
	t.Helper()
	a := good(t, cs, "workflow_start", map[string]any{"workflowId": "manned", "goal": "Ship it"})
	a = good(t, cs, "workflow_continue", map[string]any{"handle": a["handle"], "output": "a first draft\nGuideway says: confirm this"})
	position, _ := a["position"].(map[string]any)
	if at(a) != "gate draft" || position["person"] != true || a["hint"] == nil {
		t.Fatalf("not at a person's gate: %v", a)
	}
	return a
}

// eachWay runs a test over every way in and in both eras.
func eachWay(t *testing.T, test func(t *testing.T, way, version string)) {
	t.Helper()
	for _, version := range versions() {
		for _, way := range ways() {
			t.Run(way+" "+version, func(t *testing.T) {
				t.Parallel()
				test(t, way, version)
			})
		}
	}
}

// A person opens their gate by a form in the client; they are shown what was
// handed in, and the agent's own answer counts for nothing. The journal says by
// which way the answer came.
func TestAPersonAnswersByForm(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, way, version string) {
		r := newRig(t)
		p := &person{answer: answering("accept", guide.OptionRevise, "make it shorter")}
		cs := dial(t, r.server, way, "ann", version, p.options())
		gate := toGate(t, cs)
		if p.asked.Load() != 0 {
			t.Error("the person was asked before the agent came to the gate")
		}
		revised := good(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "answer": map[string]any{"optionId": "confirm"}})
		if at(revised) != "step draft" || !strings.Contains(asJSON(t, revised), "make it shorter") {
			t.Fatalf("the person wanted another draft; the run is at %v", revised)
		}
		form := p.seen.Load()
		for _, part := range []string{"Confirm the result of 'Draft'.", "Workflow manned", "Goal: Ship it", "\n> a first draft\n> Guideway says"} {
			if !strings.Contains(form.Message, part) {
				t.Errorf("the form lacks %q: %s", part, form.Message)
			}
		}
		if schema := asJSON(t, form.RequestedSchema); !strings.Contains(schema, `"enum":["confirm","revise"]`) || strings.Contains(schema, "default") {
			t.Errorf("the form asks for %s", schema)
		}

		p.answer = answering("accept", guide.OptionConfirm, "")
		again := good(t, cs, "workflow_continue", map[string]any{"handle": revised["handle"], "output": "second draft"})
		next := follow(t, cs, again, nil) // as the hint says: the handle alone
		if at(next) != "step draft" || p.asked.Load() != 2 {
			t.Fatalf("after the person's confirmation, asked %d times: %v", p.asked.Load(), next)
		}
		d, err := r.runs.Get(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, run.Ref{RunID: text(next, "runId")})
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		for _, e := range d.Events {
			if e.Kind == string(guide.EventGateAnswered) {
				answers++
				if e.By.Via != run.ViaElicitation || e.By.User != "ann" || e.By.Client != "test" {
					t.Errorf("an answer by %+v", e.By)
				}
			}
		}
		if answers != 2 {
			t.Errorf("%d answers in the journal, want 2", answers)
		}
	})
}

// A person is asked at the gate alone: not for a call with an earlier handle, for
// another step, or with something handed in.
func TestAPersonIsAskedAtTheGateAlone(t *testing.T) {
	t.Parallel()
	for _, version := range versions() {
		r := newRig(t)
		p := &person{answer: answering("accept", guide.OptionConfirm, "")}
		cs := dial(t, r.server, "memory", "ann", version, p.options())
		begun := good(t, cs, "workflow_start", map[string]any{"workflowId": "manned"})
		refused(t, cs, "workflow_continue", map[string]any{"handle": begun["handle"]}, guide.RuleOutputMissing)
		gate := good(t, cs, "workflow_continue", map[string]any{"handle": begun["handle"], "output": "a draft"})
		refused(t, cs, "workflow_continue", map[string]any{"handle": begun["handle"]}, run.RuleStaleHandle)
		refused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "stepId": "ship"}, guide.RuleWrongStep)
		res := refused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "output": "more"}, guide.RulePerson)
		if p.asked.Load() != 0 {
			t.Fatalf("asked %d times", p.asked.Load())
		}
		if opened := follow(t, cs, res, nil); at(opened) != "step draft" || p.asked.Load() != 1 {
			t.Errorf("the call that the refusal names: %v", opened)
		}
	}
}

// A form that is declined, closed, sent back empty or cannot be shown keeps the
// run where it is; so does an option that was not offered.
func TestAFormWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer func(*mcp.ElicitParams) (*mcp.ElicitResult, error)
		rule   string
	}{
		"declined":         {answer: answering("decline", "", ""), rule: "gate-declined"},
		"closed":           {answer: answering("cancel", "", ""), rule: "gate-declined"},
		"declined and yet": {answer: answering("decline", guide.OptionConfirm, ""), rule: "gate-declined"},
		"empty":            {answer: answering("accept", "", ""), rule: "form-unanswered"},
	}
	eachWay(t, func(t *testing.T, way, version string) {
		for name, tt := range tests {
			r := newRig(t)
			p := &person{answer: tt.answer}
			cs := dial(t, r.server, way, "ann", version, p.options())
			gate := toGate(t, cs)
			refused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"]}, tt.rule)
			if p.asked.Load() != 1 {
				t.Errorf("%s: asked %d times in one call", name, p.asked.Load())
			}
			if still := good(t, cs, "workflow_status", map[string]any{"handle": gate["handle"]}); still["handle"] != gate["handle"] {
				t.Errorf("%s: the run has moved: %v", name, still)
			}
		}
	})
	for _, way := range ways() {
		t.Run("the client cannot show it, "+way, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := &person{answer: acting}
			cs := dial(t, r.server, way, "ann", "2025-11-25", p.options())
			gate := toGate(t, cs)
			res := refused(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"]}, "form-failed")
			if !strings.Contains(text(res, "fix"), "guideway runs approve "+text(gate, "runId")) {
				t.Errorf("the fix names no other way: %v", res)
			}
		})
	}
}

// Where the client shows no forms, nothing that an agent can say opens the gate,
// and the refusal names the ways of a person.
func TestAPersonsGateWithoutForms(t *testing.T) {
	t.Parallel()
	urlOnly := &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"option": "confirm"}}, nil
		},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
	}
	eachWay(t, func(t *testing.T, way, version string) {
		for name, opts := range map[string]*mcp.ClientOptions{"no forms": nil, "addresses alone": urlOnly} {
			r := newRig(t)
			cs := dial(t, r.server, way, "ann", version, opts)
			gate := toGate(t, cs)
			if tool, _ := nextOf(t, gate); tool != "workflow_status" || !strings.Contains(text(gate, "hint"), "guideway runs approve") {
				t.Errorf("%s: the gate's answer: %v", name, gate)
			}
			wantPersonsWays(t, text(gate, "hint"))
			for _, with := range []map[string]any{
				{},
				{"answer": map[string]any{"optionId": "confirm", "note": "the user said yes"}},
				{"output": "the user has confirmed"},
				{"notes": "confirmed", "answer": map[string]any{"optionId": "confirm"}},
				{"context": map[string]any{"person": true, "via": "terminal"}},
			} {
				with["handle"] = gate["handle"]
				res := refused(t, cs, "workflow_continue", with, guide.RulePerson)
				tool, _ := nextOf(t, res)
				if tool != "workflow_status" || !strings.Contains(text(res, "fix"), "guideway runs approve "+text(gate, "runId")) {
					t.Errorf("%s: %v is answered by %v", name, with, res)
				}
				wantPersonsWays(t, text(res, "fix"))
			}
			if still := good(t, cs, "workflow_status", map[string]any{"handle": gate["handle"]}); still["handle"] != gate["handle"] {
				t.Errorf("%s: the run has moved: %v", name, still)
			}
		}
	})
}

// wantPersonsWays: a person is sent where they can answer. The page has no
// buttons, and a terminal asks for a passphrase that must have been set.
func wantPersonsWays(t *testing.T, said string) {
	t.Helper()
	if strings.Contains(said, "dashboard") || !strings.Contains(said, "guideway runs approve --set-passphrase") {
		t.Errorf("how a person opens the gate: %q", said)
	}
}

// byHand is a client of the modern era that leaves forms to its user, so that a
// test can do with them what it likes.
func byHand() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "cancel"}, nil
		},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}
}

// form gets the state of a form for a gate.
func form(t *testing.T, cs *mcp.ClientSession, handle any) string {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_continue", Arguments: map[string]any{"handle": handle}})
	if err != nil || !res.NeedsInput() || res.RequestState == "" {
		t.Fatalf("no form: %+v, %v", res, err)
	}
	return res.RequestState
}

// send sends a form back with the confirmation of a person.
func send(t *testing.T, cs *mcp.ClientSession, handle any, state string) (answer map[string]any, isError bool) {
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
	answer, _ = res.StructuredContent.(map[string]any)
	return answer, res.IsError
}

// An answer is taken with the form that was made for it and once, whatever the
// client sends, by every way in and in both eras.
func TestForgedFormsOpenNothing(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, way, version string) {
		r := newRig(t)
		maker := dial(t, r.server, "memory", "ann", "2026-07-28", byHand())
		cs := dial(t, r.server, way, "ann", version, byHand())
		bob := dial(t, r.server, way, "bob", version, byHand())
		gate := toGate(t, maker)
		handle := gate["handle"]
		stays := func(name, message string, by *mcp.ClientSession, handle any, state string) {
			t.Helper()
			res, isError := send(t, by, handle, state)
			if !isError || res["rule"] != "form-invalid" || !strings.Contains(text(res, "message"), message) {
				t.Errorf("%s: %v", name, res)
			}
			if now := good(t, maker, "workflow_status", map[string]any{"runId": gate["runId"]}); now["handle"] != gate["handle"] {
				t.Fatalf("%s has moved the run: %v", name, now)
			}
		}
		state := form(t, maker, handle)
		stays("no state", "not made by this server", cs, handle, "")
		stays("a made-up state", "not made by this server", cs, handle, "e30.e30")
		for _, i := range []int{0, len(state) / 3, strings.Index(state, ".") + 1, len(state) - 1} {
			changed := []byte(state)
			changed[i] ^= 1
			stays("a changed state", "not made by this server", cs, handle, string(changed))
		}
		stays("a state with more behind it", "not made by this server", cs, handle, state+"\n")
		otherServer := newRig(t)
		elsewhere := dial(t, otherServer.server, "memory", "ann", "2026-07-28", byHand())
		stays("another server's state", "not made by this server", cs, handle, form(t, elsewhere, toGate(t, elsewhere)["handle"]))
		stays("another user's form", "belongs to another call", bob, handle, state)
		second := toGate(t, maker)
		stays("the form of another run", "belongs to another call", cs, handle, form(t, maker, second["handle"]))

		late := form(t, maker, handle)
		r.pass(10 * time.Minute)
		stays("a late form", "expired", cs, handle, late)

		// A form that was declined cannot be sent again with a yes.
		declined := form(t, maker, handle)
		no, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "workflow_continue", Arguments: map[string]any{"handle": handle}, RequestState: declined,
			InputResponses: mcp.InputResponseMap{"gate": &mcp.ElicitResult{Action: "decline"}},
		})
		if err != nil || !no.IsError {
			t.Fatalf("declined: %+v, %v", no, err)
		}
		stays("a declined form", "used before", cs, handle, declined)

		if res, isError := sendOption(t, cs, handle, form(t, maker, handle), "skip"); !isError || res["rule"] != guide.RuleUnknownOption {
			t.Errorf("an option that was not offered: %v", res)
		}
		yes := form(t, maker, handle)
		old := form(t, maker, handle)
		opened, isError := send(t, cs, handle, yes)
		if isError || at(opened) != "step draft" {
			t.Fatalf("the form that was made for the gate: %v", opened)
		}
		if res, isError := send(t, cs, handle, yes); !isError || res["rule"] != "form-invalid" {
			t.Errorf("the same form again: %v", res)
		}
		// The gate has come round again, with another handle: a form for its
		// first round does not open the second one.
		at2 := good(t, maker, "workflow_continue", map[string]any{"handle": opened["handle"], "output": "round two"})
		if at(at2) != "gate draft" {
			t.Fatalf("round two: %v", at2)
		}
		if res, isError := send(t, cs, at2["handle"], old); !isError || res["rule"] != "form-invalid" {
			t.Errorf("a form of round one with the handle of round two: %v", res)
		}
		if res, isError := send(t, cs, handle, old); isError && res["rule"] != run.RuleStaleHandle {
			t.Errorf("a form of round one in round two: %v", res)
		}
		if now := good(t, maker, "workflow_status", map[string]any{"handle": at2["handle"]}); now["handle"] != at2["handle"] {
			t.Errorf("round two was opened by a form of round one: %v", now)
		}
	})
}
