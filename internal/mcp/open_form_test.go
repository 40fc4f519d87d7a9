package mcp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newWaitingPerson returns a person who waits with each form. For each form, opened
// receives a channel that takes the answer of the person.
func newWaitingPerson() (p *personClient, opened chan chan *mcp.ElicitResult) {
	opened = make(chan chan *mcp.ElicitResult, 16)
	return &personClient{answer: func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
		answer := make(chan *mcp.ElicitResult, 1)
		opened <- answer
		return <-answer, nil
	}}, opened
}

// readAndConfirm returns the confirmation of a person who has read the form.
func (r *testServer) readAndConfirm() *mcp.ElicitResult {
	r.advanceClock(readingTime)
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"option": engine.OptionConfirm}}
}

// continueAsync continues the run of a handle in the background.
func continueAsync(ctx context.Context, t *testing.T, cs *mcp.ClientSession, input map[string]any) <-chan *mcp.CallToolResult {
	t.Helper()
	result := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_continue", Arguments: input})
		if (err != nil) != (ctx.Err() != nil) {
			t.Errorf("call: %v", err)
		}
		result <- res
	}()
	return result
}

// Of parallel calls at one gate, one opens a form in the client. The others are refused with
// the open form, and suggest no call. After the answer of the person the gate is open, and
// the person was asked once.
func TestParallelCallsOpenOneForm(t *testing.T) {
	t.Parallel()
	forEachTransport(t, func(t *testing.T, transportName, version string) {
		r := newTestServer(t)
		p, opened := newWaitingPerson()
		cs := connectClient(t, r.server, transportName, "ann", version, p.clientOptions())
		gate := runToGate(t, cs)
		results := make(chan *mcp.CallToolResult)
		const calls = 8
		for n := range calls {
			input := map[string]any{"handle": gate["handle"]}
			if n%2 == 1 {
				input["answer"] = map[string]any{"optionId": "confirm"}
			}
			result := continueAsync(t.Context(), t, cs, input)
			go func() { results <- <-result }()
		}
		form := <-opened
		for range calls - 1 { // The form is open until all other calls have returned.
			select {
			case res := <-results:
				checkOpenForm(t, res, gate)
			case <-opened:
				t.Fatal("a second form was opened")
			}
		}
		form <- r.readAndConfirm()
		if res := <-results; res == nil || res.IsError {
			t.Errorf("the call with the form: %+v", res)
		}
		if asked := p.asked.Load(); asked != 1 {
			t.Errorf("the person saw %d forms", asked)
		}
		// The next position has its own form.
		now := callTool(t, cs, "workflow_status", map[string]any{"handle": gate["handle"]})
		next := callTool(t, cs, "workflow_continue", map[string]any{"handle": now["handle"], "output": "a second draft"})
		result := continueAsync(t.Context(), t, cs, map[string]any{"handle": next["handle"]})
		(<-opened) <- r.readAndConfirm()
		if res := <-result; res == nil || res.IsError {
			t.Errorf("the form of the next gate: %+v", res)
		}
	})
}

// checkOpenForm checks the refusal of a second form.
func checkOpenForm(t *testing.T, res *mcp.CallToolResult, gate map[string]any) {
	t.Helper()
	if res == nil {
		return
	}
	answer := decodeError(t, res)
	message := textMember(answer, "message")
	if !res.IsError || answer["rule"] != "form-open" || answer["next"] != nil || !strings.Contains(message, `the form for "draft" of run `+textMember(gate, "runId")) ||
		!strings.Contains(message, "since 12:0") || !strings.Contains(textMember(answer, "fix"), "guideway runs approve "+textMember(gate, "runId")) {
		t.Errorf("a call while a form is open: %v", answer)
	}
}

// TestClosedFormsBlockNoGate checks that a lost form does not block its gate: a legacy
// client loses it with its call, a modern client after ten minutes. Another client of the
// user has its own form, and so has another gate.
func TestClosedFormsBlockNoGate(t *testing.T) {
	t.Parallel()
	t.Run("legacy, cancelled", func(t *testing.T) {
		t.Parallel()
		r := newTestServer(t)
		p, opened := newWaitingPerson()
		cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", p.clientOptions())
		gate := runToGate(t, cs)
		input := map[string]any{"handle": gate["handle"]}
		ctx, cancel := context.WithCancel(t.Context())
		call := continueAsync(ctx, t, cs, input)
		lost := <-opened
		cancel()
		<-call
		for { // waits until the server has seen the cancellation
			result := continueAsync(t.Context(), t, cs, input)
			select {
			case form := <-opened:
				form <- r.readAndConfirm()
				if res := <-result; res == nil || res.IsError {
					t.Errorf("the second form: %+v", res)
				}
				lost <- &mcp.ElicitResult{Action: "cancel"}
				return
			case res := <-result:
				checkOpenForm(t, res, gate)
			}
		}
	})
	t.Run("modern, lost", func(t *testing.T) {
		t.Parallel()
		r := newTestServer(t)
		cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", manualFormOptions())
		other := connectNamedClient(t, r.server, "memory", "ann", "other", "2026-07-28", manualFormOptions())
		gate, second := runToGate(t, cs), runToGate(t, cs)
		r.readForm(t, cs, gate["handle"])
		r.readForm(t, other, gate["handle"])
		r.readForm(t, cs, second["handle"])
		for _, client := range []*mcp.ClientSession{cs, other} {
			res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_continue", Arguments: map[string]any{"handle": gate["handle"]}})
			if err != nil {
				t.Fatal(err)
			}
			checkOpenForm(t, res, gate)
		}
		r.advanceClock(10 * time.Minute)
		if answer, isError := sendFormAnswer(t, cs, gate["handle"], r.readForm(t, cs, gate["handle"])); isError {
			t.Errorf("the form after ten minutes: %v", answer)
		}
	})
}
