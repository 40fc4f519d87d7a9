package driver

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
)

//go:embed handlers.js
var handlersSource string

// Sandbox runs scripts; *sandbox.Pool implements it.
type Sandbox interface {
	Run(ctx context.Context, c sandbox.Call) (*sandbox.Result, error)
}

// Scripts calls handlers in a sandbox.
type Scripts struct {
	Sandbox Sandbox
	// Owner is the user for whom the scripts run.
	Owner string
}

var _ Handlers = (*Scripts)(nil)

// wrapper is the name of the module that calls the script.
const wrapper = "guideway-handlers.js"

// The limits of one handler call.
const (
	handlerWall   = 10 * time.Second
	handlerMemory = 64 << 20
	handlerOutput = 16 << 20
)

// Call implements Handlers.
func (s *Scripts) Call(ctx context.Context, c HandlerCall) (*HandlerResult, error) {
	file := c.File
	if file == "" {
		file = "script.js"
	}
	specifier, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	given, err := json.Marshal(c.This)
	if err != nil {
		return nil, fmt.Errorf("encode the state for the handler %s as JSON: %w", c.Function, err)
	}
	name, err := json.Marshal(c.Function)
	if err != nil {
		return nil, err
	}
	wants := json.RawMessage(strconv.FormatBool(c.WantsResult))
	r, err := s.Sandbox.Run(ctx, sandbox.Call{
		Module:  sandbox.Module{Name: wrapper, Source: "import * as script from " + string(specifier) + ";\n" + handlersSource},
		Library: map[string]string{file: c.Source},
		Args:    []json.RawMessage{name, wants, given},
		Limits:  sandbox.Limits{Wall: handlerWall, Memory: handlerMemory, Output: handlerOutput},
		Owner:   s.Owner,
		Fixed:   &sandbox.Fixed{Now: c.Now, Seed: c.Seed},
	})
	var wrong *sandbox.Error
	switch {
	case errors.As(err, &wrong) && wrong.Kind != sandbox.Crashed:
		return nil, handlerError(wrong, file)
	case err != nil:
		return nil, err
	}
	out := &HandlerResult{Console: consoleLines(r.Console)}
	var answer struct {
		Value    json.RawMessage               `json:"value"`
		Data     map[string]json.RawMessage    `json:"common_data"`
		Contexts []machineengine.ContextChange `json:"contexts"`
	}
	if err := json.Unmarshal(r.Value, &answer); err != nil {
		return nil, &HandlerError{Message: "the handler's result is not valid JSON: " + err.Error(), File: file, Console: out.Console}
	}
	out.Value, out.Data, out.Contexts = answer.Value, answer.Data, answer.Contexts
	return out, nil
}

// consoleLines formats the console output of a script.
func consoleLines(lines []sandbox.Line) []string {
	var out []string
	for _, l := range lines {
		text := l.Text
		if l.Level != "log" && l.Level != "info" {
			text = l.Level + ": " + text
		}
		out = append(out, text)
	}
	return out
}

// handlerError converts an error of the sandbox. The position of the result is the
// innermost frame in the user's file.
func handlerError(e *sandbox.Error, file string) *HandlerError {
	out := &HandlerError{Message: e.Message, File: e.File, Line: e.Line, Column: e.Column, Console: consoleLines(e.Console)}
	if e.File == file {
		return out
	}
	out.File, out.Line, out.Column = file, 0, 0
	at := regexp.MustCompile(regexp.QuoteMeta(file) + `:(\d+)(?::(\d+))?`).FindStringSubmatch(e.Stack)
	if at != nil {
		out.Line, _ = strconv.Atoi(at[1])
		out.Column, _ = strconv.Atoi(at[2])
	}
	return out
}
