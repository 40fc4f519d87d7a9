package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The rules of refusals of forms.
const (
	// ruleForm refuses a form that is not valid for the call, such as one that was changed,
	// was used, has expired or belongs to another user.
	ruleForm = "form-invalid"
	// ruleFormUnanswered refuses a form without an answer.
	ruleFormUnanswered = "form-unanswered"
	// ruleFormOpen refuses a second form at a position while one is open.
	ruleFormOpen = "form-open"
	// ruleFormFailed refuses a call if the client could not show the form.
	ruleFormFailed = "form-failed"
	// ruleDeclined refuses a call if a form at the gate was closed without an answer of a
	// person.
	ruleDeclined = "gate-declined"
)

// The members of the form.
const (
	formOption = "option"
	formNote   = "note"
)

// canAsk reports whether the client can show forms to a person who may approve.
func canAsk(ctx context.Context, req *mcp.CallToolRequest) bool {
	if !auth.OpensApprovals(ctx) {
		return false
	}
	caps := req.ClientCapabilities()
	// A client that names no mode shows forms: modes were added to the protocol later.
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// askCall returns the call that makes the client ask the person.
func askCall(handle string) *run.Call {
	return &run.Call{Tool: "workflow_continue", Arguments: map[string]any{"handle": handle}}
}

func statusCall(handle string) *run.Call { return run.StatusCall(run.Ref{Handle: handle}) }

// approvalFix returns instructions for a person to open the gate of a run without a form.
func (r *runTools) approvalFix(ctx context.Context, runID string) string {
	return approvalFix(ctx, r.live, runID)
}

// approvalFix returns the instructions with the page of the run, at the address of the
// client's request or of the dashboard that live returns.
func approvalFix(ctx context.Context, live func(ctx context.Context, sessionID string) string, runID string) string {
	page := auth.ServerURL(ctx)
	if page == "" && live != nil {
		page = strings.TrimSuffix(live(ctx, ""), "/")
	}
	if page != "" {
		page += "/runs/" + runID
	}
	return run.ApprovalFix(runID, page)
}

// refuseAgentAnswer refuses an agent's answer to a human approval. It suggests the form if
// the client can show one.
func (r *runTools) refuseAgentAnswer(ctx context.Context, form bool, runID, handle string) *run.Refusal {
	refusal := &run.Refusal{
		Code: guideway.CodeRefused, Rule: engine.RulePerson, RunID: runID,
		Message: "this gate requires human approval, which an agent cannot give",
		Fix:     r.approvalFix(ctx, runID),
	}
	if form {
		refusal.Fix = "call workflow_continue with the handle alone: the client asks the person. If the client shows no form, " + refusal.Fix
		refusal.Next = askCall(handle)
	}
	return refusal
}

// addGateOptions adds the options of this client to a refusal at a human approval, and a
// call for the status to other errors.
func (r *runTools) addGateOptions(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, handle string, err error) error {
	refusal, ok := run.AsRefusal(err)
	if !ok || refusal.Next != nil || refusal.Rule != engine.RulePerson && refusal.Rule != engine.RuleGateUnanswered {
		return withNext(err, statusCall(handle))
	}
	now, failed := r.runs.Status(ctx, c, run.Ref{Handle: handle})
	form := canAsk(ctx, req) && failed == nil && r.suggestsForm(now.Declined)
	mine := r.refuseAgentAnswer(ctx, form, refusal.RunID, handle)
	mine.Given, mine.Position = refusal.Given, refusal.Position
	return mine
}

// newQuestion returns the question to the person at a gate, with the sealed state of its
// form. It takes the step's output from the journal, not from the agent.
func (r *runTools) newQuestion(ctx context.Context, d *run.Details, state string, end func()) *question {
	ids, labels := []string{}, []string{}
	for _, o := range d.Position.Options {
		label := plainLine(o.Label, 100)
		if o.Description != "" {
			label += ": " + plainLine(o.Description, 200)
		}
		ids, labels = append(ids, o.ID), append(labels, label)
	}
	return &question{
		form: &mcp.ElicitParams{
			Mode: "form", Message: formText(d),
			RequestedSchema: map[string]any{
				"type": "object",
				"properties": map[string]any{
					formOption: map[string]any{"type": "string", "title": "Your answer", "enum": ids, "enumNames": labels},
					formNote:   map[string]any{"type": "string", "title": "Note to the agent"},
				},
				"required": []string{formOption},
			},
		},
		state: state, close: end,
		failed: &run.Refusal{
			Code: guideway.CodeUnavailable, Rule: ruleFormFailed, RunID: d.ID,
			Message: "the client could not ask the person", Fix: r.approvalFix(ctx, d.ID),
		},
	}
}

// formText returns the text of the form. It quotes the agent's output and notes, so that a
// person cannot mistake them for the server's own text.
func formText(d *run.Details) string {
	const longest = 500
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nWorkflow %s, run %s.", plainLine(d.Position.Message, longest), d.Workflow, d.ID)
	if d.Goal != "" {
		b.WriteString("\nGoal: " + plainLine(d.Goal, longest))
	}
	if d.Submission == nil {
		b.WriteString("\n\nThere is no output to review at this gate.")
		return b.String()
	}
	writeCheckResults(&b, d.Submission.Checks)
	writeQuoted(&b, "The agent submitted:", d.Submission.Output, d.ID)
	if d.Submission.Notes != "" {
		writeQuoted(&b, "Notes of the agent:", d.Submission.Notes, d.ID)
	}
	return b.String()
}

// writeCheckResults lists the checks that the server executed for the output. Without them,
// the output is only a claim of the agent.
func writeCheckResults(b *strings.Builder, checks []run.CheckSummary) {
	const longest = 300
	for i, c := range checks {
		if i == 0 {
			b.WriteString("\n\nChecks that Guideway executed:")
		}
		result := "failed"
		switch {
		case c.Undefined:
			result = "not executed: the project does not define it"
		case c.Passed:
			result = "passed"
		}
		if c.ConnectHost != "" {
			result += " on " + plainLine(c.ConnectHost, maxConnectHost) + ", as guideway connect reports"
		}
		fmt.Fprintf(b, "\n- %s: %s", plainLine(c.Check, longest), result)
	}
}

// maxQuoted is the maximum number of characters of an output in a form.
const maxQuoted = 16_000

// writeQuoted writes the text of an agent. If the text is truncated, its title states this,
// because a client may not show the end of the form.
func writeQuoted(b *strings.Builder, title, text, runID string) {
	if strings.TrimSpace(text) == "" {
		text = "(empty)"
	}
	runes := []rune(visible.EscapeText(text))
	b.WriteString("\n\n" + title)
	more := len(runes) - maxQuoted
	if more > 0 {
		runes = runes[:maxQuoted]
		fmt.Fprintf(b, " (characters that are not shown: %d; to read the full text, run guideway runs approve %s)", more, runID)
	}
	for line := range strings.Lines(string(runes)) {
		b.WriteString("\n> " + strings.TrimSuffix(line, "\n"))
	}
	if more > 0 {
		fmt.Fprintf(b, "\n(characters that are not shown: %d; to read them, run guideway runs approve %s)", more, runID)
	}
}

// acceptFormAnswer applies the person's answer in a form. It never asks again, because a
// client with a legacy protocol version would receive an empty answer.
func (r *runTools) acceptFormAnswer(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, handle string) (any, error) {
	if !auth.OpensApprovals(ctx) {
		return nil, formRefusal(handle, ruleForm, "a form of this client is not the answer of a person who may approve")
	}
	form, err := r.forms.redeemState(ctx, req.Params.RequestState, c.User, handle)
	if guideway.ErrorCode(err) == guideway.CodeUnavailable {
		return nil, err
	}
	if err != nil {
		refusal := formRefusal(handle, ruleForm, err.Error())
		if errors.Is(err, errFormUsed) {
			refusal.Fix, refusal.Next = "call workflow_status: the answer may have been accepted", statusCall(handle)
		}
		return nil, refusal
	}
	defer r.forms.closeForm(form) // deferred, so that the form stays open until a decline is recorded
	response, ok := req.Params.InputResponses[gateForm].(*mcp.ElicitResult)
	if !ok {
		return nil, formRefusal(handle, ruleFormUnanswered, "the form was returned without an answer")
	}
	if response.Action != "accept" || r.readingTime(form) < minReadingTime {
		return nil, r.recordDecline(ctx, c, form, response.Action)
	}
	option, _ := response.Content[formOption].(string)
	note, _ := response.Content[formNote].(string)
	if option == "" {
		return nil, formRefusal(handle, ruleFormUnanswered, "the form was returned without a chosen option")
	}
	c.Via = run.ViaElicitation
	// The handle binds the answer to the position that the form showed: when the run
	// reaches the gate again, the gate has a different handle.
	a, err := r.runs.Continue(ctx, c, run.ContinueRequest{
		Handle: form.Handle, Step: form.Gate, Answer: &engine.Answer{OptionID: option, Note: note},
	})
	if err != nil {
		return nil, err
	}
	return r.newAnswer(ctx, req, a, nil), nil
}

// minReadingTime is the least time that a person needs to read a form. A form that is
// closed or answered sooner was not read by a person, so it has no answer.
const minReadingTime = time.Second

// readingTime returns the time since a form was sent to the client.
func (r *runTools) readingTime(form formState) time.Duration {
	return r.forms.now().Sub(time.UnixMilli(form.Asked))
}

// repeatAfter is the minimum time between a form without an answer and the next form.
const repeatAfter = time.Minute

// recordDecline records a form without an answer and returns the refusal of the call.
func (r *runTools) recordDecline(ctx context.Context, c run.Caller, form formState, action string) error {
	after := r.readingTime(form)
	request := run.DeclineRequest{Handle: form.Handle, ByClient: after < minReadingTime}
	request.Action, request.AfterMS = plainLine(action, maxClient), after.Milliseconds()
	if !request.ByClient {
		c.Via = run.ViaElicitation
	}
	if err := r.runs.RecordDecline(ctx, c, request); err != nil {
		return err
	}
	return r.declinedRefusal(ctx, form.Run, form.Handle, request.ByClient, action)
}

// declinedRefusal refuses a call at a gate whose form has no answer of a person. It
// suggests no call: only a person continues the run.
func (r *runTools) declinedRefusal(ctx context.Context, runID, handle string, byClient bool, action string) *run.Refusal {
	refusal := &run.Refusal{
		Code: guideway.CodeRefused, Rule: ruleDeclined, RunID: runID,
		Message: "the person closed the form without an answer; the run waits",
		Fix:     "talk to the person before you request an answer to the gate again. Without a form, " + r.approvalFix(ctx, runID),
	}
	if action != "" {
		refusal.Given = shortenValue(action)
	}
	if byClient {
		refusal.Message = "the form was closed or answered before a person could read it; the run waits"
		refusal.Fix = r.approvalFix(ctx, runID)
	}
	return refusal
}

// maxForms bounds the forms without an answer at one position.
const maxForms = 20

// canRepeatForm reports whether the person can be asked again after a form without an answer.
func (r *runTools) canRepeatForm(last *run.Decline) bool {
	return last == nil || last.Count < maxForms && r.forms.now().Sub(last.At) >= repeatAfter
}

// suggestsForm reports whether an answer at a human approval suggests the call that shows
// the form. If a client closes every form at once, an agent that follows the suggestions
// would otherwise repeat that call forever.
func (r *runTools) suggestsForm(last *run.Decline) bool {
	return r.canRepeatForm(last) && (last == nil || !last.ByClient)
}

// refuseRepeatedForm refuses to ask again soon after a form without an answer, or too often
// at one position.
func (r *runTools) refuseRepeatedForm(ctx context.Context, d *run.Details) error {
	if r.canRepeatForm(d.Declined) {
		return nil
	}
	return r.declinedRefusal(ctx, d.ID, d.Current, d.Declined.ByClient, "")
}

// refuseOpenForm refuses a second form at a position. It suggests no call: only the person
// who reads the first form continues the run.
func (r *runTools) refuseOpenForm(ctx context.Context, open formState) *run.Refusal {
	at := func(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" }
	return &run.Refusal{
		Code: guideway.CodeRefused, Rule: ruleFormOpen, RunID: open.Run,
		Message: fmt.Sprintf("the person was already asked about this gate: the form for %q of run %s has been open in this client since %s",
			open.Gate, open.Run, at(time.UnixMilli(open.Asked))),
		Fix: "wait for the answer to the open form; if the form is lost, it expires at " + at(time.Unix(open.Expires, 0)) + ". Without a form, " + r.approvalFix(ctx, open.Run),
	}
}

func formRefusal(handle, rule, message string) *run.Refusal {
	return &run.Refusal{
		Code: guideway.CodeRefused, Rule: rule, Message: message,
		Fix: "call workflow_continue with the handle alone to ask the person again", Next: askCall(handle),
	}
}

type questionKey struct{}

// noteQuestion records for explainFailedForms that a call asks the person.
func noteQuestion(ctx context.Context, q *question) {
	if slot, ok := ctx.Value(questionKey{}).(*atomic.Pointer[question]); ok {
		slot.Store(q)
	}
}

// explainFailedForms is middleware for clients with a legacy protocol version, which the
// SDK asks on the server's behalf: the form closes with the call. If the form fails, it
// returns a refusal with a next action; the SDK would return a protocol error. A client with
// a modern protocol version has the form until it repeats the call.
func (r *responder) explainFailedForms(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		var asked atomic.Pointer[question]
		result, err := next(context.WithValue(ctx, questionKey{}, &asked), method, req)
		q := asked.Load()
		if q == nil {
			return result, err
		}
		if answer, ok := result.(*mcp.CallToolResult); err != nil || ok && !answer.NeedsInput() {
			q.close()
		}
		if call, ok := req.(*mcp.CallToolRequest); ok && err != nil && ctx.Err() == nil {
			return r.encodeRefusal(call, q.failed), nil
		}
		return result, err
	}
}

// formLifetime is the time that a person has to answer a form.
const formLifetime = 10 * time.Minute

// formState identifies the question of a form. The client receives it sealed, and returns
// it with the answer.
type formState struct {
	User    string `json:"u"`
	Client  string `json:"c"`
	Run     string `json:"r"`
	Handle  string `json:"h"`
	Gate    string `json:"g"`
	Expires int64  `json:"e"` // Unix time in seconds
	Asked   int64  `json:"a"` // Unix time in milliseconds
	Nonce   string `json:"n"`
}

// formPlace identifies a position of a run and the client that asks a person about it.
type formPlace struct{ user, client, handle string }

// formStore seals the states of forms, and accepts each state once. At most one form is open
// at a place. The key and the states are in memory only: a form is not valid after a restart
// of the server. The instances of a deployment share the states, and accept the forms of each
// other.
type formStore struct {
	key    []byte
	shared deployment.Shared // nil for a single instance
	now    func() time.Time

	mu sync.Mutex
	// used maps the nonces of returned forms to their expiry.
	used map[string]time.Time
	// open maps a place to the form that is open there.
	open map[formPlace]formState
}

func newForms(shared deployment.Shared, now func() time.Time) *formStore {
	f := &formStore{key: make([]byte, sha256.Size), shared: shared, now: now, used: map[string]time.Time{}, open: map[formPlace]formState{}}
	_, _ = rand.Read(f.key) // Read never returns an error; it ends the process instead.
	return f
}

// openForm opens a form and returns its sealed state. It sets expiry and nonce. If a form
// is already open at the place, it returns the state of that form instead, and sealed is
// empty.
func (f *formStore) openForm(ctx context.Context, s formState) (sealed string, open formState, err error) {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce)
	s.Nonce = base64.RawURLEncoding.EncodeToString(nonce)
	now := f.now()
	s.Asked, s.Expires = now.UnixMilli(), now.Add(formLifetime).Unix()
	sealed, err = f.sealState(ctx, kindForm, s)
	if err != nil {
		return "", formState{}, err
	}
	err = f.changeOpen(ctx, s, func(now formState) formState {
		open = now
		if now == (formState{}) {
			open = s
		}
		return open
	})
	if err != nil || open != s {
		return "", open, err
	}
	return sealed, s, nil
}

// closeForm removes a form from the open ones. An answer to it is still accepted.
func (f *formStore) closeForm(s formState) {
	ctx, cancel := deployment.Context()
	defer cancel()
	_ = f.changeOpen(ctx, s, func(now formState) formState { // after an error, the form expires
		if now.Nonce == s.Nonce {
			return formState{}
		}
		return now
	})
}

// changeOpen replaces the form that is open at the place of s by the result of edit. The zero
// value is no form.
func (f *formStore) changeOpen(ctx context.Context, s formState, edit func(formState) formState) error {
	place, now := formPlace{s.User, s.Client, s.Handle}, f.now()
	if f.shared != nil {
		if err := f.shared.Prune(ctx, "open-forms/", now.Add(-formLifetime)); err != nil {
			return err
		}
		return f.shared.Change(ctx, "open-forms/"+digest.Hex(place.user+"\x00"+place.client+"\x00"+place.handle), func(text string) (string, error) {
			var open formState
			if text != "" {
				if err := json.Unmarshal([]byte(text), &open); err != nil {
					return "", err
				}
			}
			if now.Unix() >= open.Expires {
				open = formState{}
			}
			if open = edit(open); open == (formState{}) {
				return "", nil
			}
			next, err := json.Marshal(open)
			return string(next), err
		})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.open, func(_ formPlace, o formState) bool { return now.Unix() >= o.Expires })
	if f.open[place] = edit(f.open[place]); f.open[place] == (formState{}) {
		delete(f.open, place)
	}
	return nil
}

// The kinds of sealed states.
const (
	kindForm    = "gate form"
	kindConnect = "connect request"
)

// sealState returns the text of a state of a kind with its MAC.
func (f *formStore) sealState(ctx context.Context, kind string, state any) (string, error) {
	text, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	payload := base64.RawURLEncoding.EncodeToString(text)
	mac, err := f.signPayload(ctx, kind, payload)
	return payload + "." + mac, err
}

// unsealState reads a sealed state of a kind.
func (f *formStore) unsealState(ctx context.Context, kind, sealed string, state any) error {
	payload, mac, _ := strings.Cut(sealed, ".")
	// Compares the text and not the decoded bytes: several base64 texts decode to the same
	// bytes.
	want, err := f.signPayload(ctx, kind, payload)
	if err != nil {
		return err
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if !hmac.Equal([]byte(mac), []byte(want)) || err != nil || json.Unmarshal(text, state) != nil {
		return errFormUnknown
	}
	return nil
}

func (f *formStore) signPayload(ctx context.Context, kind, payload string) (string, error) {
	key := f.key
	if f.shared != nil {
		var err error
		if key, err = f.shared.DeriveKey(ctx, "gate forms"); err != nil {
			return "", err
		}
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("guideway " + kind + "\n" + payload))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
}

// The errors of redeemState.
var (
	errFormUnknown = errors.New("the form was changed, or was not made by this server since it started")
	errFormForeign = errors.New("the form was sent to another user or for another handle")
	errFormExpired = errors.New("the form has expired")
	errFormUsed    = errors.New("the form was used before")
)

// redeemState opens the state that a user returned in a call with a handle, and marks the
// state as used.
func (f *formStore) redeemState(ctx context.Context, sealed, user, handle string) (formState, error) {
	var s formState
	if err := f.unsealState(ctx, kindForm, sealed, &s); err != nil {
		return formState{}, err
	}
	now := f.now()
	switch {
	case s.User != user || s.Handle != handle:
		return formState{}, errFormForeign
	case now.Unix() >= s.Expires:
		return formState{}, errFormExpired
	}
	return s, f.useOnce(ctx, "forms/"+s.Nonce, time.Unix(s.Expires, 0), formLifetime)
}

// useOnce returns errFormUsed if a name was used before it expires. lifetime is the time from
// its creation to its expiry.
func (f *formStore) useOnce(ctx context.Context, name string, expires time.Time, lifetime time.Duration) error {
	now := f.now()
	if f.shared != nil {
		first, err := deployment.UseOnce(ctx, f.shared, name, now, 2*lifetime)
		if err == nil && !first {
			err = errFormUsed
		}
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.used[name]; ok {
		return errFormUsed
	}
	maps.DeleteFunc(f.used, func(_ string, expires time.Time) bool { return now.After(expires) })
	f.used[name] = expires
	return nil
}
