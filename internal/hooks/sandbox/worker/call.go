package worker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/quickjs"
)

// The messages of the engine's errors for scripts that it ended.
const (
	engineInterrupted = "interrupted"
	engineMemory      = "out of memory"
	engineStack       = "stack overflow"
)

// armCall prepares the VM for a request.
func (v *vm) armCall(r *scriptwire.Request) {
	v.current = current{
		script: newScript(r), limits: r.Limits, console: &console{room: r.Limits.Console}, mu: &sync.Mutex{},
	}
	v.e.SetLimits(quickjs.Limits{
		Memory: r.Limits.Memory, Stack: r.Limits.Stack, Garbage: min(gcThreshold, r.Limits.Memory/4),
	})
}

// checkScript parses the script and its library without running them.
func (v *vm) checkScript(known forms) *scriptwire.Answer {
	known.setForm(v, v.script.main)
	for _, m := range append([]*module{v.script.main}, v.script.modules...) {
		if err := v.parseModule(m); err != nil {
			return v.compileFailure(err, m)
		}
	}
	return &scriptwire.Answer{Body: v.script.main.body}
}

// callScript runs the script until the script reports a result, is stopped or cannot
// continue. stopped is closed when the VM is stopped.
func (v *vm) callScript(r *scriptwire.Request, known forms, stopped <-chan struct{}) *scriptwire.Answer {
	known.setForm(v, v.script.main)
	args := []any{
		r.Name, float64(r.Limits.Output),
		r.Fixed, float64(r.Now), float64(int32(r.Seed >> 32)), float64(int32(r.Seed)),
	}
	for _, a := range r.Args {
		args = append(args, string(a))
	}
	v.e.SetDeadline(time.Now().Add(r.Limits.Wall))
	_, err := v.e.Call(v.start, args...)
	for v.report == nil {
		if kind, _ := v.stopReason(); kind != "" || isEnd(err) {
			return v.endOf(err)
		}
		var more bool
		if more, err = v.e.RunJobs(); more || v.report != nil || err != nil {
			continue
		}
		if a := v.waitForSleepers(stopped); a != nil {
			return a
		}
	}
	if kind, _ := v.stopReason(); kind == scriptwire.Output {
		return v.endOf(err)
	}
	return v.newAnswer(r)
}

// isEnd reports whether an error ends the call. Other errors come from jobs that the script
// does not await, and are ignored.
func isEnd(err error) bool {
	var e *quickjs.Error
	return errors.As(err, &e) && (e.Name == "InternalError" || e.Name == "")
}

// waitForSleepers waits for calls of sleep. Without a report and without a sleeper, a
// script can never end.
func (v *vm) waitForSleepers(stopped <-chan struct{}) *scriptwire.Answer {
	next, err := v.e.Call(v.tick)
	if err != nil {
		return v.endOf(err)
	}
	ms, ok := next.(float64)
	switch {
	case !ok || ms < 0:
		return &scriptwire.Answer{
			Kind:    scriptwire.Timeout,
			Message: "the script waits for a promise that can no longer settle",
		}
	case ms > 0:
		v.sleepFor(time.Duration(ms*float64(time.Millisecond)), stopped)
	}
	return nil
}

// endOf returns the answer for a script that ended without a report.
func (v *vm) endOf(err error) *scriptwire.Answer {
	kind, reason := v.stopReason()
	if kind == "" {
		return v.engineFailure(err)
	}
	a := &scriptwire.Answer{Kind: kind, Message: reason}
	var e *quickjs.Error
	if errors.As(err, &e) {
		v.placeByStack(a, e.Stack)
	}
	return a
}

// engineFailure returns the answer for an error of the engine.
func (v *vm) engineFailure(err error) *scriptwire.Answer {
	var e *quickjs.Error
	if !errors.As(err, &e) {
		if err == nil {
			err = errors.New("the script ended without a result")
		}
		return &scriptwire.Answer{Kind: scriptwire.Crashed, Message: err.Error()}
	}
	return v.thrownAnswer("load", e.Name, e.Message, e.Stack, e.File, e.Line, e.Column)
}

// compileFailure returns the answer for an error of the parser, which does not know the
// module's name.
func (v *vm) compileFailure(err error, m *module) *scriptwire.Answer {
	var e *quickjs.Error
	if !errors.As(err, &e) {
		return v.engineFailure(err)
	}
	file := e.File // the file is set if the error is in an imported module
	if file == engineName {
		file = m.name
	}
	return v.thrownAnswer("load", e.Name, e.Message, "", file, e.Line, e.Column)
}

// newAnswer converts the driver's report to an answer.
func (v *vm) newAnswer(r *scriptwire.Request) *scriptwire.Answer {
	rest := v.report[1:]
	switch v.report[0] {
	case "over":
		size, _ := v.report[1].(float64)
		return tooLarge(int64(size), v.limits.Output)
	case "failed":
		return v.thrownAnswer(stringAt(rest, 0), stringAt(rest, 1), stringAt(rest, 2), stringAt(rest, 3),
			stringAt(rest, 4), intAt(rest, 5), intAt(rest, 6))
	}
	a := &scriptwire.Answer{Audit: v.audit}
	size := v.written
	part := func(i int) []byte {
		if i >= len(rest) {
			return nil
		}
		s, ok := rest[i].(string)
		if !ok {
			return nil
		}
		size += int64(len(s))
		return []byte(wholeRunes(s))
	}
	a.Value = part(0)
	for i := range r.Args {
		a.Args = append(a.Args, part(1+i))
	}
	restoreNumbers(a, r)
	if size > v.limits.Output {
		return tooLarge(size, v.limits.Output)
	}
	return a
}

func restoreNumbers(a *scriptwire.Answer, r *scriptwire.Request) {
	given := collectLiterals(r.Args...)
	a.Value = given.restoreLiterals(a.Value)
	for i := range a.Args {
		a.Args[i] = given.restoreLiterals(a.Args[i])
	}
}

func tooLarge(size, limit int64) *scriptwire.Answer {
	return &scriptwire.Answer{
		Kind:    scriptwire.Output,
		Message: fmt.Sprintf("the result takes at least %d bytes, over the limit of %d", size, limit),
	}
}

// thrownAnswer returns the answer for an error that the script threw at a stage of the
// call.
func (v *vm) thrownAnswer(stage, name, message, stack, file string, line, column int) *scriptwire.Answer {
	if v.failure != nil && stage == "load" && strings.Contains(message, v.failure.Message) {
		v.placeAt(v.failure, v.failure.File, v.failure.Line, v.failure.Column)
		return v.failure
	}
	a := &scriptwire.Answer{Kind: scriptwire.Exception, Message: message}
	if name != "" {
		a.Message = strings.TrimSuffix(name+": "+message, ": ")
	}
	a.Message = wholeRunes(a.Message)
	switch {
	case name == "InternalError" && message == engineMemory:
		a.Kind, a.Message = scriptwire.Memory, fmt.Sprintf("the script exceeded its memory limit of %d bytes", v.limits.Memory)
	case name == "InternalError" && message == engineStack, strings.HasSuffix(message, engineStack):
		a.Kind, a.Message = scriptwire.Stack, fmt.Sprintf("the script exceeded its limit of %d nested calls", v.limits.Stack)
	case name == "InternalError" && message == engineInterrupted:
		a.Kind, a.Message = scriptwire.Timeout, "the script was interrupted"
	case stage == "load" && name == "SyntaxError":
		a.Kind = scriptwire.Syntax
	case name == "" && message == "null":
		// If the engine has no memory for an error object, it throws null.
		a.Kind, a.Message = scriptwire.Memory, fmt.Sprintf("the script exceeded its memory limit of %d bytes, or threw null", v.limits.Memory)
	case stage == "arguments":
		a.Kind, a.Message = scriptwire.Rejected, "an argument is not JSON: "+message
	case stage == "result":
		a.Kind = scriptwire.Unserialisable
	}
	if a.Kind == scriptwire.Syntax {
		v.placeAt(a, file, line, column)
	}
	v.placeByStack(a, stack)
	a.Message = cutText(a.Message, maxMessage)
	return a
}

// maxMessage and maxStack limit the texts of an error.
const (
	maxMessage = 4 << 10
	maxStack   = 8 << 10
)

func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}
