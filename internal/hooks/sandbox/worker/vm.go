package worker

import (
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/quickjs"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/secret"
)

//go:embed prelude.js
var preludeSource string

// engineName is the name of the prelude, and of a module that is only parsed, in stacks;
// user code has other names.
const engineName = "<eval>"

// vm is the engine of a worker and its current call. Except stopWith, it is not safe for
// concurrent use.
type vm struct {
	e           *quickjs.Engine
	start, tick quickjs.Value
	// ask sends a question to the host and returns its reply.
	ask func(question []byte) ([]byte, error)
	current
}

// current is the state of a call.
type current struct {
	script  *script
	parsing *module // the module that is only parsed, or nil
	console *console

	report  []any // the driver's report
	audit   [][]byte
	written int64 // the size of the audit records in bytes
	limits  scriptwire.Limits
	failure *scriptwire.Answer

	mu      *sync.Mutex
	stopped scriptwire.Kind // the reason why another goroutine stopped the VM; guarded by mu
	reason  string
}

const (
	// gcThreshold is the maximum allocation of a script before the engine collects cycles:
	// most calls end before there is much garbage.
	gcThreshold = 8 << 20
	// ownMemory is the maximum memory of the engine itself.
	ownMemory = 8 << 20
)

// newVM creates the engine with everything except user code. memory is the highest memory
// limit of scripts in bytes.
func newVM(memory int64) (*vm, error) {
	v := &vm{}
	e, err := quickjs.New(quickjs.Options{
		// While an array grows, two copies of it exist.
		Memory: int(2*memory + ownMemory),
		Functions: map[string]quickjs.Function{
			"__report": v.onReport, "__emit": v.onEmit, "__audit": v.onAudit,
			"__ask": v.onAsk, "__redact": onRedact, "__namesSecret": onNamesSecret, "__utf8": onUTF8, "__text": onText, "__sha256": onSHA256,
		},
		Resolve: v.resolveImport, Load: v.loadModule,
	})
	if err != nil {
		return nil, fmt.Errorf("create an engine: %w", err)
	}
	v.e = e
	driver, err := e.Eval(engineName, preludeSource)
	if err != nil {
		return nil, fmt.Errorf("run the prelude: %w", err)
	}
	if v.start, err = e.Member(driver, "start"); err != nil {
		return nil, fmt.Errorf("load the driver: %w", err)
	}
	if v.tick, err = e.Member(driver, "tick"); err != nil {
		return nil, fmt.Errorf("load the driver: %w", err)
	}
	return v, nil
}

// stopWith ends the script at the engine's next check; the first reason counts. It is safe for
// concurrent use.
func (v *vm) stopWith(kind scriptwire.Kind, reason string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stopped == "" {
		v.stopped, v.reason = kind, reason
	}
	v.e.Interrupt()
}

// stopReason returns the reason why the VM was stopped, or "".
func (v *vm) stopReason() (scriptwire.Kind, string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stopped, v.reason
}

// resolveImport returns the name of an imported module. Only the driver may import the
// user's script; scripts import modules of the library.
func (v *vm) resolveImport(importer, name string) (string, error) {
	switch {
	case importer != engineName:
	case v.parsing != nil: // a module that is only parsed has no name in the engine yet
		importer = v.parsing.name
	case name == v.script.main.name:
		return name, nil
	}
	for _, known := range []string{name, strings.TrimPrefix(name, "./")} {
		if v.script.libraryModule(known) != nil {
			return known, nil
		}
	}
	err := fmt.Errorf("cannot import '%s': %s", name, v.script.importNames())
	if v.failure == nil {
		line, column := v.script.findImport(importer, name)
		v.failure = &scriptwire.Answer{
			Kind: scriptwire.Syntax, Message: err.Error(), File: importer, Line: line, Column: column,
		}
	}
	return "", err
}

func (v *vm) loadModule(name string) (string, error) {
	if name == v.script.main.name {
		return v.script.main.engineText(), nil
	}
	if m := v.script.libraryModule(name); m != nil {
		return m.source, nil
	}
	return "", fmt.Errorf("there is no module '%s'", name)
}

func (v *vm) onReport(args []any) (any, error) {
	if v.report == nil {
		v.report = args
		v.e.Finish() // do not run jobs that the script does not await
	}
	return nil, nil
}

func (v *vm) onEmit(args []any) (any, error) {
	level, text := stringAt(args, 0), stringAt(args, 1)
	return v.console.addLine(level, text), nil
}

func (v *vm) onAudit(args []any) (any, error) {
	record := stringAt(args, 0)
	v.written += int64(len(record))
	if v.written > v.limits.Output {
		v.stopWith(scriptwire.Output, fmt.Sprintf("the audit records exceed the limit of %d bytes", v.limits.Output))
		return nil, errors.New("the audit records exceed their limit")
	}
	v.audit = append(v.audit, []byte(record))
	return nil, nil
}

func (v *vm) onAsk(args []any) (any, error) {
	question := stringAt(args, 0)
	if len(question) > scriptwire.MaxReply {
		return fmt.Sprintf(`{"error":"the value has more than %d bytes"}`, scriptwire.MaxReply), nil
	}
	reply, err := v.ask([]byte(question))
	return string(reply), err
}

func onRedact(args []any) (any, error) {
	clean, _ := secret.Detector{Personal: stringAt(args, 2) == "true"}.Redact(stringAt(args, 0), stringAt(args, 1))
	return clean, nil
}

func onNamesSecret(args []any) (any, error) { return secret.NamesSecret(stringAt(args, 0)), nil }

func onUTF8(args []any) (any, error) {
	return base64.StdEncoding.EncodeToString([]byte(strings.ToValidUTF8(wholeRunes(stringAt(args, 0)), "\uFFFD"))), nil
}

func onText(args []any) (any, error) {
	b, err := base64.StdEncoding.DecodeString(stringAt(args, 0))
	if err != nil {
		return nil, err
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
}

func onSHA256(args []any) (any, error) {
	b, err := base64.StdEncoding.DecodeString(stringAt(args, 0))
	if err != nil {
		return nil, err
	}
	return digest.Hex(b), nil
}

func stringAt(args []any, i int) string {
	if i < len(args) {
		s, _ := args[i].(string)
		return s
	}
	return ""
}

func intAt(args []any, i int) int {
	if i < len(args) {
		n, _ := args[i].(float64)
		return int(n)
	}
	return 0
}

// console keeps the console output; the watchdog of a hanging script reads it concurrently.
type console struct {
	mu        sync.Mutex
	lines     []scriptwire.Line
	room      int64
	truncated bool
}

// maxLines is the maximum number of lines.
const maxLines = 1000

// addLine adds a line and reports whether the limits allow more lines.
func (c *console) addLine(level, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	text = wholeRunes(text)
	if int64(len(text)) > c.room || len(c.lines) >= maxLines {
		text = strings.ToValidUTF8(text[:min(int64(len(text)), max(c.room, 0))], "")
		c.truncated = true
		c.room = 0
		if text == "" || len(c.lines) >= maxLines {
			return false
		}
	}
	c.room -= int64(len(text))
	c.lines = append(c.lines, scriptwire.Line{Level: level, Text: text})
	return !c.truncated
}

func (c *console) allLines() ([]scriptwire.Line, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines), c.truncated
}

// wholeRunes replaces the three bytes of each lone surrogate with one U+FFFD, like a
// browser.
func wholeRunes(s string) string {
	if !strings.Contains(s, "\xed") {
		return s
	}
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == 0xed && b[i+1] >= 0xa0 {
			copy(b[i:], "\uFFFD")
			i += 2
		}
	}
	return string(b)
}

// sleepFor waits for a duration, or until the VM is stopped.
func (v *vm) sleepFor(d time.Duration, stopped <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stopped:
	}
}
