package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/visible"
)

const (
	// minReadingTime is the least time that a person needs to read a form. A form that is
	// closed or answered sooner was not read by a person, so it has no answer.
	minReadingTime = time.Second
	// holdFormTime is the time that a person has to answer a form, and repeatFormAfter the
	// minimum time between a form without an answer and the next one.
	holdFormTime    = 10 * time.Minute
	repeatFormAfter = time.Minute
	// maxHoldForms is the maximum number of forms without an answer about one call.
	maxHoldForms = 20
	// maxFormText is the maximum size of the text of a form. A longer text is not shown as
	// a form, because a person must see everything that is approved.
	maxFormText = 16_000
)

// The members of a form about a held call.
const (
	holdQuestion = "held-call"
	holdAnswer   = "answer"
	holdNote     = "note"
	holdApprove  = "approve"
	holdDeny     = "deny"
)

// holdForms are the open forms about held calls: each call has at most one. They are in
// memory only, because a form does not outlive the connection of its client.
type holdForms struct {
	mu sync.Mutex
	// expiry maps the IDs of held calls to the expiry of their forms.
	expiry map[string]time.Time
}

// open opens a form. It returns false if one is open.
func (f *holdForms) open(id string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.expiry, func(_ string, end time.Time) bool { return !now.Before(end) })
	if _, ok := f.expiry[id]; ok {
		return false
	}
	f.expiry[id] = now.Add(holdFormTime)
	return true
}

func (f *holdForms) close(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.expiry, id)
}

// opensApprovals reports whether a form in the client opens human approvals, like
// auth.OpensApprovals.
func (c *Client) opensApprovals() bool { return c.Principal.Roles == nil && c.Holder == "" }

// hasForms reports whether the client can show forms to a person who may approve.
func (c *Client) hasForms() bool {
	var modes struct {
		Form json.RawMessage `json:"form"`
		URL  json.RawMessage `json:"url"`
	}
	// A client that names no mode shows forms: modes were added to the protocol later.
	return c.opensApprovals() && c.Capabilities.Elicitation != nil && json.Unmarshal(c.Capabilities.Elicitation, &modes) == nil && (modes.Form != nil || modes.URL == nil) &&
		(c.Modern || c.Ask != nil)
}

// canShowHold reports whether a form can ask a person about a call, again or for the first
// time. A client that closed a form before a person could read it gets no other form for
// the call.
func (g *Gateway) canShowHold(held holds.Call) bool {
	if len(holdFormText(held)) > maxFormText {
		return false
	}
	last := held.Closed
	return last == nil || !last.ByClient && last.Count < maxHoldForms && g.opts.Now().Sub(last.At) >= repeatFormAfter
}

// newHoldForm returns the question to the person. It has no default answer.
func newHoldForm(held holds.Call) question {
	params, _ := json.Marshal(map[string]any{ // Strings always marshal.
		"mode": "form", "message": holdFormText(held),
		"requestedSchema": map[string]any{
			"type": "object",
			"properties": map[string]any{
				holdAnswer: map[string]any{
					"type": "string", "title": "Your answer", "enum": []string{holdApprove, holdDeny},
					"enumNames": []string{"Approve: send this call once", "Deny: refuse this call"},
				},
				holdNote: map[string]any{"type": "string", "title": "Note to the agent"},
			},
			"required": []string{holdAnswer},
		},
	})
	return question{ID: holdQuestion, Method: "elicitation/create", Params: params}
}

// holdFormText returns the text of the form. It quotes the arguments, so that a person cannot
// mistake them for the text of the server.
func holdFormText(held holds.Call) string {
	var b strings.Builder
	line := func(text string) string { return clipText(visible.EscapeLine(text), 500) }
	fmt.Fprintf(&b, "A call of the tool %s of the MCP server %q waits for your approval.\n\nReason: %s\nClient: %s\nHeld call: %s",
		line(held.Name), held.Upstream, line(held.Reason), line(held.Client), held.ID)
	text := visible.EscapeText(held.ShownArguments())
	if text == "" {
		b.WriteString("\n\nThe call has no arguments.")
		return b.String()
	}
	b.WriteString("\n\nArguments:")
	for each := range strings.Lines(text) {
		b.WriteString("\n> " + strings.TrimSuffix(each, "\n"))
	}
	return b.String()
}

// askHold asks a legacy client about a held call, and stores the answer.
func (g *Gateway) askHold(ctx context.Context, c *Client, held holds.Call) error {
	defer g.holdForms.close(held.ID)
	form := newHoldForm(held)
	asked := g.opts.Now()
	result, failure := c.Ask(ctx, form.Method, form.Params)
	if failure != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.logger.Warn("the client could not ask a person about a held call", "call", held.ID, "error", failure)
		return g.opts.Holds.CloseForm(ctx, held.User, held.ID, true)
	}
	return g.storeHoldAnswer(ctx, c, held.ID, asked, result)
}

// acceptHoldForm stores the answer of a modern client to a form.
func (g *Gateway) acceptHoldForm(ctx context.Context, c *Client, st state, responses json.RawMessage) error {
	g.holdForms.close(st.Held)
	if !c.opensApprovals() {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "a form of this client is not the answer of a person who may approve"}
	}
	members, err := jsonrpc.Members(responsesOf(responses))
	if err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the inputResponses are invalid: " + err.Error()}
	}
	if members[holdQuestion] == nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the inputResponses lack an answer to " + holdQuestion}
	}
	return g.storeHoldAnswer(ctx, c, st.Held, time.UnixMilli(st.Asked), members[holdQuestion])
}

// storeHoldAnswer stores the answer in a form. A form that was closed, or answered before a
// person could read it, is no answer. A call that was answered elsewhere keeps that answer.
func (g *Gateway) storeHoldAnswer(ctx context.Context, c *Client, id string, asked time.Time, result json.RawMessage) error {
	var given struct {
		Action  string `json:"action"`
		Content struct {
			Answer string `json:"answer"`
			Note   string `json:"note"`
		} `json:"content"`
	}
	valid := json.Unmarshal(result, &given) == nil && given.Action == "accept" && (given.Content.Answer == holdApprove || given.Content.Answer == holdDeny)
	unread := g.opts.Now().Sub(asked) < minReadingTime
	if !valid || unread {
		return g.opts.Holds.CloseForm(ctx, c.Principal.User, id, unread)
	}
	_, err := g.opts.Holds.Answer(ctx, holds.AnswerRequest{ID: id, User: c.Principal.User, Answer: holds.Answer{
		Approve: given.Content.Answer == holdApprove, By: c.Principal.User, Via: "elicitation", Note: given.Content.Note,
	}})
	if guideway.ErrorCode(err) == guideway.CodeConflict {
		return nil
	}
	return err
}
