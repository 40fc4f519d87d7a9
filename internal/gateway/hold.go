package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Holds keeps the held calls; a *holds.Store implements it.
type Holds interface {
	// Claim decides on a call that is held. If the status of the result is Used, the call is
	// sent, and it was not sent before.
	Claim(ctx context.Context, r holds.Request) (holds.Call, error)
	// Answer stores the answer of a person, once.
	Answer(ctx context.Context, r holds.AnswerRequest) (holds.Call, error)
	// CloseForm records that a form was closed without an answer.
	CloseForm(ctx context.Context, user, id string, byClient bool) error
}

// HoldTimes limit held calls: Wait is the time that a person has to answer, and Use the time
// in which an approval must be used. The defaults of the package holds apply if they are
// zero.
type HoldTimes struct{ Wait, Use time.Duration }

type holdKey struct{}

// WithHold returns a context in which a call to a tool is held for a person. Several reasons
// are joined.
func WithHold(ctx context.Context, reason string) context.Context {
	if before, ok := ctx.Value(holdKey{}).(string); ok {
		reason = before + "; " + reason
	}
	return context.WithValue(ctx, holdKey{}, reason)
}

// bindCall returns what an approval of a call covers, and the canonical arguments.
func (g *Gateway) bindCall(c *Client, t *tool, arguments json.RawMessage) (holds.Binding, json.RawMessage, error) {
	canonical, hash, err := holds.EncodeArguments(arguments)
	if err != nil {
		return holds.Binding{}, nil, err
	}
	pin, err := pins.Of(t.definition)
	if err != nil {
		return holds.Binding{}, nil, guideway.Errorf(guideway.CodeRefused, "the call needs the approval of a person, but the definition of the tool is invalid: %w", err).
			WithFix("ask the user to check the upstream: guideway upstream show %s", t.member.Name())
	}
	return holds.Binding{
		User: c.Principal.User, Token: c.Holder, Client: c.Principal.Client,
		Upstream: t.member.Name(), Server: t.member.Entry.Spec.Hash(), Tool: t.original, Pin: pin.Hash, Hash: hash,
	}, canonical, nil
}

// covers reports whether the approval of a held call covers a call of t. A call that is not
// held needs no approval.
func (g *Gateway) covers(c *Client, t *tool, r Request) bool {
	if r.approved == "" {
		return true
	}
	b, _, err := g.bindCall(c, t, r.Arguments)
	return err == nil && b.ID() == r.approved
}

// heldError is the error of a call that waits for a person, or that a person denied.
type heldError struct {
	err  *guideway.Error
	call holds.Call
}

// Error implements error.
func (e *heldError) Error() string { return e.err.Error() }

// Unwrap returns the *guideway.Error.
func (e *heldError) Unwrap() error { return e.err }

// result returns the tool error, with the ID of the held call.
func (e *heldError) result() json.RawMessage {
	rule := "call-held"
	if e.call.Status == holds.Denied {
		rule = "call-denied"
	}
	return toolError(e.err.Code, e.err.Message, e.err.Fix,
		jsonrpc.Member{Key: "rule", Value: jsonrpc.Text(rule)}, jsonrpc.Member{Key: "heldCall", Value: jsonrpc.Text(e.call.ID)})
}

// checkHold returns the request to send to a tool. If the call is held and no person has
// approved it, checkHold returns the result that asks the client for a form, or an error.
// reason is a policy's reason for holding the call, or ""; hooks may have reasons too.
// checkHold is called after the hooks, with the call as it would be sent.
func (g *Gateway) checkHold(ctx context.Context, c *Client, called, to *tool, r Request, reason string) (Request, json.RawMessage, error) {
	var st state
	if r.State != "" {
		var err error
		if st, err = g.sealer.openState(r.State, c.stateOwner(), called.name); err != nil {
			return r, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
	}
	if st.Parked != "" { // The call was sent, and its arguments are not sent again.
		return r, nil, nil
	}
	responses := r.Responses
	if st.Held != "" { // The responses are for the gateway.
		r.State, r.Responses = "", nil
	}
	if hook, ok := ctx.Value(holdKey{}).(string); ok && reason != "" {
		reason += "; " + hook
	} else if ok {
		reason = hook
	}
	if reason == "" {
		return r, nil, nil
	}
	b, arguments, err := g.bindCall(c, to, r.Arguments)
	if err != nil {
		return r, nil, err
	}
	r.Arguments, r.Meta = arguments, nil // Meta is dropped, because the person must see everything that is sent.
	if r.approved = b.ID(); st.Approved == r.approved {
		return r, nil, nil
	}
	r.State, r.Responses = "", nil
	if g.opts.Holds == nil {
		return r, nil, guideway.Errorf(guideway.CodeRefused, "the call needs the approval of a person, but this server cannot ask for it").
			WithFix("call the tool through guideway mcp or guideway serve")
	}
	if st.Held != "" {
		if err := g.acceptHoldForm(ctx, c, st, responses); err != nil {
			return r, nil, err
		}
	}
	times := g.holdTimes.Load()
	result, err := g.claimCall(ctx, c, holds.Request{
		Binding: b, Name: called.name, Arguments: arguments, Reason: reason, Runs: runsOf(r.Scopes), Wait: times.Wait, UseWithin: times.Use,
	}, st.Held == "")
	return r, result, err
}

// runsOf returns the IDs of the runs that policies belong to.
func runsOf(scopes []toolpolicy.Scope) (ids []string) {
	for _, s := range scopes {
		if s.Run != "" {
			ids = append(ids, s.Run)
		}
	}
	return ids
}

// claimCall claims the approval of a call. It returns nil if the call is to be sent. If ask
// is set and the client supports forms, it asks the person with a form.
func (g *Gateway) claimCall(ctx context.Context, c *Client, want holds.Request, ask bool) (json.RawMessage, error) {
	for {
		held, err := g.opts.Holds.Claim(ctx, want)
		if err != nil {
			return nil, err
		}
		switch {
		case held.Status == holds.Used:
			noteHeld(ctx, "", held.ID)
			return nil, nil
		case held.Status == holds.Denied:
			noteHeld(ctx, OutcomeDenied, held.ID)
			return nil, g.deniedError(held)
		case !ask || !c.hasForms() || !g.canShowHold(held) || !g.holdForms.open(held.ID, g.opts.Now()):
			noteHeld(ctx, OutcomeHeld, held.ID)
			return nil, g.waitingError(ctx, held)
		}
		if c.Modern {
			noteHeld(ctx, OutcomeHeld, held.ID)
			return c.inputResult([]question{newHoldForm(held)}, g.sealer.sealState(state{
				User: c.stateOwner(), Tool: want.Name, Held: held.ID, Asked: g.opts.Now().UnixMilli(),
			}))
		}
		if err := g.askHold(ctx, c, held); err != nil {
			return nil, err
		}
		ask = false
	}
}

// waitingError returns the error of a call that waits for a person.
func (g *Gateway) waitingError(ctx context.Context, held holds.Call) error {
	err := guideway.Errorf(guideway.CodeRefused, "the call of %s was not sent: it waits for the approval of a person (held call %s: %s)", held.Name, held.ID, held.Reason)
	return &heldError{err: err.WithFix("%s. After the approval, make the same call again, unchanged, within %s; a changed call needs its own approval", g.approvalFix(ctx, held.ID), time.Duration(held.UseSeconds)*time.Second), call: held}
}

// deniedError returns the error of a call that a person denied.
func (g *Gateway) deniedError(held holds.Call) error {
	note := ""
	if held.Answer != nil && held.Answer.Note != "" {
		note = ": " + held.Answer.Note
	}
	err := guideway.Errorf(guideway.CodeRefused, "a person denied this call of %s (held call %s)%s; it was not sent", held.Name, held.ID, note)
	return &heldError{err: err.WithFix("do not repeat the call; ask the person how to continue"), call: held}
}

// approvalFix returns instructions for a person to answer a held call.
func (g *Gateway) approvalFix(ctx context.Context, id string) string {
	fix := "ask the person to answer the held call at a terminal, with guideway calls approve " + id + " (or deny)"
	if page := g.pageURL(ctx, "/calls/"+id); page != "" {
		fix += ", or on the page " + page
	}
	return fix
}

// pageURL returns the URL of a page of the dashboard, or "" if no dashboard runs.
func (g *Gateway) pageURL(ctx context.Context, path string) string {
	page := auth.ServerURL(ctx)
	if page == "" && g.opts.Dashboard != nil {
		page = g.opts.Dashboard(ctx)
	}
	if page == "" {
		return ""
	}
	return strings.TrimSuffix(page, "/") + path
}

// noteHeld records in the observation of a request that its call is held. An empty outcome
// leaves the outcome open.
func noteHeld(ctx context.Context, outcome Outcome, id string) {
	if o, ok := ctx.Value(observationKey{}).(*observation); ok {
		o.Held = id
		if outcome != "" {
			o.Outcome, o.Error = outcome, "held call "+id
		}
	}
}
