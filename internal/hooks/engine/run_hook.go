package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// maxAudit is the maximum number of audit records of one hook.
const maxAudit = 100

// runHook runs a blocking hook.
func (x *execution) runHook(ctx context.Context, n *node, entry *NodeTrace) *Outcome {
	given, err := x.state.scriptContext(n.ID)
	var result *ScriptResult
	if err == nil {
		result, err = x.engine.runScript(ctx, &x.state, given, n)
	}
	entry.Console, entry.Error = consoleOf(result, err), nodeError(err)
	if err != nil {
		return x.failedOutcome(n, x.nodeFailure("hook", n, err))
	}
	before := x.state.response
	verdict, err := readVerdict(result.Value)
	if err == nil {
		entry.Changes, err = x.applyContext(given, verdict.resultContext(result.Context))
	}
	if err == nil {
		err = x.state.addHold(verdict.hold)
	}
	if err == nil {
		err = x.engine.storeAudit(ctx, &x.state, n, result.Audit)
	}
	if err != nil {
		entry.Error = nodeError(err)
		return x.failedOutcome(n, x.nodeFailure("hook", n, err))
	}
	answers := !x.state.response.isEmpty() && !bytes.Equal(before.raw, x.state.response.raw)
	switch {
	case verdict.refused || verdict.stop && !answers:
		entry.Error = &NodeError{Code: verdict.code, Message: verdict.message}
		return x.refusedOutcome("hook", n, verdict.code, verdict.message)
	case n.Hook.Answers && x.state.response.isEmpty():
		err := fmt.Errorf("the hook must answer instead of the upstream, but did not set context.response")
		entry.Error = nodeError(err)
		return x.failedOutcome(n, x.nodeFailure("hook", n, err))
	case verdict.stop:
		return &Outcome{Node: n.ID}
	}
	return nil
}

// applyContext applies the context that a blocking hook left, if it differs from the one
// that the hook got.
func (x *execution) applyContext(given, left json.RawMessage) ([]Change, error) {
	if bytes.Equal(given, left) {
		return nil, nil // unchanged, as for most hooks
	}
	after, err := parseTree(left)
	if err != nil {
		return nil, fmt.Errorf("the context that the hook left is not valid: %w", err)
	}
	return x.state.applyTree(after)
}

// addHold holds the call that will be sent.
func (s *state) addHold(reason string) error {
	switch {
	case reason == "":
		return nil
	case s.method != hookdef.ToolsCall:
		return fmt.Errorf("the hook holds a request of the method %s; only calls of tools can be held", s.method)
	case s.sent || s.answered:
		return fmt.Errorf("the hook holds a call that was already sent or answered; hold the call in a hook before the mcp-call")
	case s.hold != "":
		reason = s.hold + "; " + reason
	}
	s.hold = reason
	return nil
}

// verdict is the decoded return value of a hook.
type verdict struct {
	// stop ends the request at this hook. refused is set if the hook returned an error;
	// then the request is refused.
	stop, refused bool
	code, message string
	// hold is the reason to hold the call, or "".
	hold string
	// replaced is a returned context that replaces the changed one.
	replaced json.RawMessage
}

// resultContext returns the context to continue with.
func (v verdict) resultContext(mutated json.RawMessage) json.RawMessage {
	if len(v.replaced) > 0 {
		return v.replaced
	}
	return mutated
}

// readVerdict decodes the return value of a hook: nothing, {continue, context, error, hold},
// or the context. Anything else is an error, because its meaning is unclear.
func readVerdict(raw json.RawMessage) (verdict, error) {
	v := verdict{code: CodeRefused}
	if len(raw) == 0 {
		return v, nil
	}
	t, err := parseTree(raw)
	switch {
	case err != nil:
		return v, fmt.Errorf("the hook's return value is not valid: %w", err)
	case t.kind == 'n':
		return v, nil
	case t.valueOf("request") != nil:
		v.replaced = t.raw
		return v, nil
	case t.kind != '{' || t.valueOf("continue") == nil && t.valueOf("context") == nil && t.valueOf("error") == nil && t.valueOf("hold") == nil:
		return v, fmt.Errorf("the hook returned %s; it may return nothing, the context, or {continue, context, error, hold}", cutShort(t.raw))
	}
	if c := t.valueOf("context"); !c.isNull() {
		v.replaced = c.raw
	}
	if c := t.valueOf("continue"); c != nil {
		if c.kind != 't' {
			return v, fmt.Errorf("the hook returned a 'continue' that is neither true nor false")
		}
		v.stop = !c.flag
	}
	if h := t.valueOf("hold"); !h.isNull() {
		if h.kind != '"' || h.text == "" {
			return v, fmt.Errorf("the hook returned a 'hold' that is not a string with a reason")
		}
		v.hold = h.text
	}
	if e := t.valueOf("error"); !e.isNull() {
		v.stop, v.refused = true, true
		v.message = e.valueOf("message").scalarText()
		if e.kind == '"' {
			v.message = e.text
		}
		if code := e.valueOf("code").scalarText(); code != "" {
			v.code = code
		}
	}
	return v, nil
}

// scalarText returns a string, or a number as it is written; "" for anything else.
func (t *tree) scalarText() string {
	switch {
	case t == nil:
		return ""
	case t.kind == '"':
		return t.text
	case t.kind == '0':
		return string(t.raw)
	default:
		return ""
	}
}

func cutShort(raw []byte) string {
	const most = 60
	if text := []rune(string(raw)); len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(raw)
}

// runScript runs the script of a hook on a context.
func (e *Engine) runScript(ctx context.Context, s *state, value json.RawMessage, n *node) (*ScriptResult, error) {
	timeout := n.Hook.Timeout
	if timeout <= 0 {
		timeout = e.opts.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := e.opts.Scripts.RunHook(ctx, ScriptCall{
		Script: n.script, Context: value, Timeout: timeout, Graph: s.graph, Metadata: s.metadata,
	})
	var known *ScriptError
	switch {
	case err == nil && result == nil:
		return nil, &ScriptError{Code: CodeScript, Message: "the script returned no result"}
	case err == nil:
		return result, nil
	case errors.As(err, &known):
		return nil, err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &ScriptError{Code: CodeTimeout, Message: fmt.Sprintf("the hook took longer than %s", timeout)}
	default:
		return nil, err
	}
}

// storeAudit stores the audit records of a hook.
func (e *Engine) storeAudit(ctx context.Context, s *state, n *node, records []json.RawMessage) error {
	switch {
	case len(records) == 0:
		return nil
	case len(records) > maxAudit:
		return &ScriptError{Code: CodeAudit, Message: fmt.Sprintf("the hook has %d audit records; the maximum is %d", len(records), maxAudit)}
	case e.opts.Audit == nil:
		return &ScriptError{Code: CodeAudit, Message: "the hook has audit records, but this program writes no audit file"}
	}
	for _, record := range records {
		err := e.opts.Audit.Audit(ctx, AuditEntry{
			Time: e.opts.Now().UTC().Truncate(time.Millisecond), Graph: s.graph, Node: n.ID, ClientID: s.metadata.ClientID,
			Server: s.metadata.ServerName, Method: s.method, Record: record,
		})
		if err != nil {
			return &ScriptError{Code: CodeAudit, Message: "the audit records were not written: " + err.Error()}
		}
	}
	return nil
}

// startBackground starts a fire-and-forget hook on a copy of the current state. It never
// waits.
func (x *execution) startBackground(ctx context.Context, n *node) {
	e := x.engine
	entry := NodeTrace{ID: n.ID, Kind: n.Kind, FireAndForget: true, Pending: true}
	drop := func(why string) {
		entry.Pending, entry.Error = false, &NodeError{Code: CodeDropped, Message: why}
		x.trace.addNode(entry)
		e.notifyBackground(x.state.graph, entry)
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		drop("the program is exiting")
		return
	}
	select {
	case e.slots <- struct{}{}:
	default:
		e.mu.Unlock()
		drop(fmt.Sprintf("%d fire-and-forget hooks, the maximum, are already running", cap(e.slots)))
		return
	}
	e.asides.Add(1)
	e.mu.Unlock()
	i, s := x.trace.addNode(entry), x.state
	// The hook outlives the request, but not the engine.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(e.life, cancel)
	go func() {
		defer e.asides.Done()
		defer release()
		defer cancel()
		done := e.runBackground(ctx, &s, n, entry)
		<-e.slots
		e.notifyBackground(s.graph, done)
		x.trace.setNode(i, done)
	}()
}

// runBackground runs a fire-and-forget hook. Its return value and the changes to its copy
// are ignored; its audit records are stored.
func (e *Engine) runBackground(ctx context.Context, s *state, n *node, entry NodeTrace) NodeTrace {
	begun := e.opts.Now()
	value, err := s.scriptContext(n.ID)
	var result *ScriptResult
	if err == nil {
		result, err = e.runScript(ctx, s, value, n)
	}
	entry.Console = consoleOf(result, err)
	if err == nil {
		err = e.storeAudit(ctx, s, n, result.Audit)
	}
	entry.Error, entry.Pending = nodeError(err), false
	entry.MS = milliseconds(e.opts.Now().Sub(begun))
	return entry
}

// notifyBackground reports the trace of a fire-and-forget hook.
func (e *Engine) notifyBackground(graph string, entry NodeTrace) {
	if e.opts.OnBackground != nil {
		if entry.Console == nil {
			entry.Console = []Line{}
		}
		e.opts.OnBackground(graph, entry)
	}
}

// consoleOf returns the console output of a script, successful or not.
func consoleOf(result *ScriptResult, err error) []Line {
	var failed *ScriptError
	switch {
	case errors.As(err, &failed):
		return failed.Console
	case result != nil:
		return result.Console
	default:
		return nil
	}
}

// nodeError converts an error for a trace.
func nodeError(err error) *NodeError {
	var failed *ScriptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return &NodeError{Code: failed.Code, Message: failed.Message, File: failed.File, Line: failed.Line, Column: failed.Column}
	default:
		return &NodeError{Code: CodeScript, Message: err.Error()}
	}
}

// mayContain reports whether encoded JSON may contain a word, which could also be written
// with escapes.
func mayContain(raw []byte, word string) bool {
	return bytes.Contains(raw, []byte(word)) || bytes.Contains(raw, []byte(`\u`))
}
