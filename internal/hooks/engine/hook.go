package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// maxAudit bounds what one hook may hand to the audit.
const maxAudit = 100

// hook runs a blocking hook.
func (x *execution) hook(ctx context.Context, n *node, entry *NodeTrace) *Outcome {
	given, err := x.state.context(n.ID)
	var result *ScriptResult
	if err == nil {
		result, err = x.engine.script(ctx, given, n)
	}
	entry.Console, entry.Error = console(result, err), nodeError(err)
	if err != nil {
		return x.failed(n, x.stopped("hook", n, err))
	}
	before := x.state.response
	verdict, err := readVerdict(result.Value)
	if err == nil {
		entry.Changes, err = x.takeOver(given, verdict.context(result.Context))
	}
	if err == nil {
		err = x.engine.audit(ctx, &x.state, n, result.Audit)
	}
	if err != nil {
		entry.Error = nodeError(err)
		return x.failed(n, x.stopped("hook", n, err))
	}
	answers := !x.state.response.none() && !bytes.Equal(before.raw, x.state.response.raw)
	switch {
	case verdict.refused || verdict.stop && !answers:
		entry.Error = &NodeError{Code: verdict.code, Message: verdict.message}
		return x.refused(n, verdict.code, verdict.message)
	case n.Hook.Answers && x.state.response.none():
		err := fmt.Errorf("it is to answer in place of the server, and left no context.response")
		entry.Error = nodeError(err)
		return x.failed(n, x.stopped("hook", n, err))
	case verdict.stop:
		return &Outcome{Node: n.ID}
	}
	return nil
}

// takeOver takes over the context that a blocking hook left of the one that it was
// given.
func (x *execution) takeOver(given, left json.RawMessage) ([]Change, error) {
	if bytes.Equal(given, left) {
		return nil, nil // most hooks only look
	}
	after, err := parseTree(left)
	if err != nil {
		return nil, fmt.Errorf("the context that the hook left is no JSON: %w", err)
	}
	return x.state.take(after)
}

// verdict is what a hook returned.
type verdict struct {
	// stop ends the way of the request here; refused is with an error.
	stop, refused bool
	code, message string
	// replaced is the context that was returned in place of the one changed.
	replaced json.RawMessage
}

// context is the context to go on with.
func (v verdict) context(mutated json.RawMessage) json.RawMessage {
	if len(v.replaced) > 0 {
		return v.replaced
	}
	return mutated
}

// readVerdict reads what a hook returned: nothing, {continue, context, error}, or
// the context. Anything else is an error, since nobody can say what it means.
func readVerdict(raw json.RawMessage) (verdict, error) {
	v := verdict{code: CodeRefused}
	if len(raw) == 0 {
		return v, nil
	}
	t, err := parseTree(raw)
	switch {
	case err != nil:
		return v, fmt.Errorf("what the hook returned is no JSON: %w", err)
	case t.kind == 'n':
		return v, nil
	case t.get("request") != nil:
		v.replaced = t.raw
		return v, nil
	case t.kind != '{' || t.get("continue") == nil && t.get("context") == nil && t.get("error") == nil:
		return v, fmt.Errorf("the hook returned %s; it returns nothing, the context, or {continue, context, error}", cutShort(t.raw))
	}
	if c := t.get("context"); !c.null() {
		v.replaced = c.raw
	}
	if c := t.get("continue"); c != nil {
		if c.kind != 't' {
			return v, fmt.Errorf("the hook returned a 'continue' that is neither true nor false")
		}
		v.stop = !c.flag
	}
	if e := t.get("error"); !e.null() {
		v.stop, v.refused = true, true
		v.message = e.get("message").word()
		if e.kind == '"' {
			v.message = e.text
		}
		if code := e.get("code").word(); code != "" {
			v.code = code
		}
	}
	return v, nil
}

// word is a text, or a number as it is written; "" for anything else.
func (t *tree) word() string {
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

// script runs the script of a hook on a context.
func (e *Engine) script(ctx context.Context, value json.RawMessage, n *node) (*ScriptResult, error) {
	timeout := n.Hook.Timeout
	if timeout <= 0 {
		timeout = e.opts.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result, err := e.opts.Scripts.RunHook(ctx, ScriptCall{Script: n.script, Context: value, Timeout: timeout})
	var known *ScriptError
	switch {
	case err == nil && result == nil:
		return nil, &ScriptError{Code: CodeScript, Message: "the script gave no result"}
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

// audit keeps what a hook handed to the audit.
func (e *Engine) audit(ctx context.Context, s *state, n *node, records []json.RawMessage) error {
	switch {
	case len(records) == 0:
		return nil
	case len(records) > maxAudit:
		return &ScriptError{Code: CodeAudit, Message: fmt.Sprintf("the hook has %d records for the audit; at most %d are taken", len(records), maxAudit)}
	case e.opts.Audit == nil:
		return &ScriptError{Code: CodeAudit, Message: "the hook has records for the audit, and no file is set for them"}
	}
	for _, record := range records {
		err := e.opts.Audit.Audit(ctx, AuditEntry{
			Time: e.opts.Now().UTC().Truncate(time.Millisecond), Graph: s.graph, Node: n.ID, ClientID: s.metadata.ClientID,
			Server: s.metadata.ServerName, Method: s.method, Record: record,
		})
		if err != nil {
			return &ScriptError{Code: CodeAudit, Message: "the audit was not written: " + err.Error()}
		}
	}
	return nil
}

// aside has a fire-and-forget hook run on a copy of what there is now. It never
// waits.
func (x *execution) aside(ctx context.Context, n *node) {
	e := x.engine
	entry := NodeTrace{ID: n.ID, Kind: n.Kind, Aside: true, Pending: true}
	drop := func(why string) {
		entry.Pending, entry.Error = false, &NodeError{Code: CodeDropped, Message: why}
		x.trace.begin(entry)
		e.tell(x.state.graph, entry)
	}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		drop("the program is ending")
		return
	}
	select {
	case e.slots <- struct{}{}:
	default:
		e.mu.Unlock()
		drop(fmt.Sprintf("%d fire-and-forget hooks run already", cap(e.slots)))
		return
	}
	e.asides.Add(1)
	e.mu.Unlock()
	i, s := x.trace.begin(entry), x.state
	// It outlives the request, and not the engine.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(e.life, cancel)
	go func() {
		defer e.asides.Done()
		defer release()
		defer cancel()
		done := e.runAside(ctx, &s, n, entry)
		<-e.slots
		e.tell(s.graph, done)
		x.trace.set(i, done)
	}()
}

// runAside runs a fire-and-forget hook. What it returns, and what it does to its
// copy, is of no interest but to the audit.
func (e *Engine) runAside(ctx context.Context, s *state, n *node, entry NodeTrace) NodeTrace {
	begun := e.opts.Now()
	value, err := s.context(n.ID)
	var result *ScriptResult
	if err == nil {
		result, err = e.script(ctx, value, n)
	}
	entry.Console = console(result, err)
	if err == nil {
		err = e.audit(ctx, s, n, result.Audit)
	}
	entry.Error, entry.Pending = nodeError(err), false
	entry.MS = milliseconds(e.opts.Now().Sub(begun))
	return entry
}

// tell tells what a fire-and-forget hook did.
func (e *Engine) tell(graph string, entry NodeTrace) {
	if e.opts.OnAside != nil {
		if entry.Console == nil {
			entry.Console = []Line{}
		}
		e.opts.OnAside(graph, entry)
	}
}

// console is what a script wrote, whether or not it came to its end.
func console(result *ScriptResult, err error) []Line {
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

// nodeError is an error as a trace tells it.
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

// mentions says whether a text may have a word in it as JSON, which could be
// written in escapes too.
func mentions(raw []byte, word string) bool {
	return bytes.Contains(raw, []byte(word)) || bytes.Contains(raw, []byte(`\u`))
}
