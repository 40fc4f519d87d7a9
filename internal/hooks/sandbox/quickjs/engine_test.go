package quickjs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newEngine(t *testing.T, o Options) *Engine {
	t.Helper()
	if o.Memory == 0 {
		o.Memory = 16 << 20
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// runFunction returns the result of a function without arguments.
func runFunction(t *testing.T, e *Engine, source string) (any, error) {
	t.Helper()
	f, err := e.Eval("test.js", "(function () { "+source+" })")
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return e.Call(f)
}

func mustRun(t *testing.T, e *Engine, source string) any {
	t.Helper()
	got, err := runFunction(t, e, source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return got
}

// leftovers are scripts that leave traces in an engine.
var leftovers = []string{
	"globalThis.left = 1; Object.prototype.left = 2; Array.prototype.push = null; delete globalThis.JSON",
	"Object.freeze(globalThis); Object.defineProperty(Math, 'PI', { get() { return 3; } })",
	"globalThis.big = []; for (let i = 0; i < 50000; i++) big.push({ i, s: 'x' + i })",
	"globalThis.s = 'x'.repeat(1 << 20) + 'y'; globalThis.b = new Uint8Array(3 << 20).fill(7)",
	"globalThis.p = Promise.resolve(1).then(() => { globalThis.later = 1 }); for (let i = 0; i < 9; i++) Symbol.for('k' + i)",
	"globalThis.m = new Map(); for (let i = 0; i < 9999; i++) m.set({}, i); globalThis.w = new WeakMap([[m, m]])",
	"const loop = {}; loop.self = loop; globalThis.keep = /(a+)+b/.exec('aaaaaab'); throw new Error('at the end')",
	"const f = () => f(); f()",
	"const a = ['x']; for (;;) a.push(a[a.length - 1] + a[a.length - 1])",
	"for (let i = 0; ; i++) globalThis['g' + i] = new Array(100).fill(i)",
}

// After a restore, no data of previous scripts is left: the region equals the image byte
// for byte, and is zero beyond it.
func TestRestoreClearsEverything(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	random := []byte("seed for the state of Math.random")
	blank := e.Image(nil)
	mustRun(t, e, "globalThis.parsed = 'a script'; globalThis.more = new Array(1000).fill('x')")
	second := e.Image(blank)
	if second.Size() >= blank.Size()/2 {
		t.Errorf("a second image takes %d bytes, the first one %d; want less than half", second.Size(), blank.Size())
	}
	state := func(i *Image) []byte {
		e.Restore(i)
		all := bytes.Clone(bytesAt(e.heap.baseAddress(), e.heap.high-e.heap.baseAddress()))
		copy(all[e.ctx-e.heap.baseAddress()+offsetOfRandom:], random[:8])
		return all
	}
	images := map[string]*Image{"first": blank, "second": second}
	before := map[string][]byte{}
	for name, i := range images {
		before[name] = state(i)
	}
	for _, source := range leftovers {
		for name, i := range images {
			e.Restore(i)
			e.SetLimits(Limits{Memory: 8 << 20, Stack: 500, Garbage: 1 << 20})
			_, err := runFunction(t, e, source)
			_, _ = e.RunJobs()
			used := e.heap.high
			if got := state(i); !bytes.Equal(got, before[name]) {
				t.Errorf("after %q (%v) the restored %s image differs", source, err, name)
			}
			if rest := bytesAt(e.heap.top, used-e.heap.top); len(bytes.Trim(rest, "\x00")) != 0 {
				t.Errorf("after %q (%v) the memory beyond the %s image is not zero", source, err, name)
			}
			want := map[string]any{"first": "undefined", "second": "string"}[name]
			if got := mustRun(t, e, "return typeof globalThis.parsed"); got != want {
				t.Errorf("after %q, typeof parsed in the %s image is %v", source, name, got)
			}
		}
	}
}

// Random numbers differ after each restore, although everything else is equal.
func TestRestoreChangesRandomState(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	blank := e.Image(nil)
	seen := map[any]bool{}
	for range 50 {
		e.Restore(blank)
		seen[mustRun(t, e, "return Math.random()")] = true
	}
	if len(seen) != 50 {
		t.Errorf("50 engines returned %d different random numbers", len(seen))
	}
}

// An image contains addresses, so only its own engine can restore it.
func TestRestoreRefusesForeignImages(t *testing.T) {
	t.Parallel()
	a, b := newEngine(t, Options{}), newEngine(t, Options{})
	defer func() {
		if recover() == nil {
			t.Error("an engine restored the image of another engine")
		}
	}()
	a.Restore(b.Image(nil))
}

// A script that exceeds a limit gets an error, and the engine works after a restore.
func TestLimits(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Memory: 24 << 20})
	blank := e.Image(nil)
	for _, c := range []struct {
		name, source, want string
		limits             Limits
	}{
		{"memory", "const a = []; for (;;) a.push('x' + a.length)", "out of memory", Limits{Memory: 4 << 20, Garbage: 1 << 20}},
		{"one block", "return 'x'.repeat(8 << 20).length", "out of memory", Limits{Memory: 4 << 20, Garbage: 1 << 20}},
		{"the region", "const a = []; for (;;) a.push(new Uint8Array(1 << 20))", "out of memory", Limits{Memory: 1 << 40, Garbage: 1 << 20}},
		{"calls", "const f = (n) => f(n + 1) + 1; return f(0)", "stack overflow", Limits{Memory: 8 << 20, Stack: 300, Garbage: 1 << 20}},
	} {
		e.Restore(blank)
		e.SetLimits(c.limits)
		_, err := runFunction(t, e, c.source)
		var thrown *Error
		if !errors.As(err, &thrown) || thrown.Name != "InternalError" || thrown.Message != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	e.Restore(blank)
	if got := mustRun(t, e, "return 6 * 7"); got != 42.0 {
		t.Errorf("after the restore, the result is %v, want 42", got)
	}
}

// A deadline and an interrupt end a script that catches everything; both apply until an
// image is restored.
func TestDeadlineAndInterrupt(t *testing.T) {
	t.Parallel()
	const stubborn = "for (;;) { try { for (;;) {} } catch (e) {} finally { continue } }"
	for name, end := range map[string]func(*Engine){
		"deadline":  func(e *Engine) { e.SetDeadline(time.Now().Add(-time.Second)) },
		"interrupt": func(e *Engine) { e.Interrupt() },
	} {
		e := newEngine(t, Options{})
		blank := e.Image(nil)
		f, err := e.Eval("test.js", "(function () { "+stubborn+" })")
		if err != nil {
			t.Fatal(err)
		}
		end(e)
		for range 2 {
			var thrown *Error
			if _, err := e.Call(f); !errors.As(err, &thrown) || thrown.Message != "interrupted" {
				t.Errorf("%s: %v", name, err)
			}
		}
		e.Restore(blank)
		if got := mustRun(t, e, "let n = 0; for (let i = 0; i < 100000; i++) n++; return n"); got != 1e5 {
			t.Errorf("after the %s and a restore, the result is %v", name, got)
		}
	}
}

// RunJobs runs jobs until none is left, or until the job that calls Finish has ended.
func TestRunJobs(t *testing.T) {
	t.Parallel()
	var e *Engine
	var told []any
	e = newEngine(t, Options{Functions: map[string]Function{
		"tell": func(args []any) (any, error) {
			told = append(told, args...)
			if args[0] == "last" {
				e.Finish()
			}
			return nil, nil
		},
	}})
	mustRun(t, e, `Promise.resolve().then(() => { tell("a"); return 1 }).then((n) => tell(n))`)
	if more, err := e.RunJobs(); more || err != nil {
		t.Errorf("more %v, %v", more, err)
	}
	mustRun(t, e, `Promise.resolve().then(() => { tell("last"); tell("and its end") }).then(() => tell("too late"))`)
	if _, err := e.RunJobs(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]any{"a", 1.0, "last", "and its end"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Values are converted completely in both directions. Values of unsupported types become
// nil.
func TestValues(t *testing.T) {
	t.Parallel()
	var got []any
	e := newEngine(t, Options{Functions: map[string]Function{
		"echo": func(args []any) (any, error) { got = args; return args[0], nil },
		"fail": func([]any) (any, error) { return nil, errors.New("50 % of \x00 failed") },
	}})
	echo, err := e.Eval("test.js", "(v) => echo(v, typeof v, typeof v === 'string' ? v.length : 0)")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value any
		kind  string
		size  float64
	}{
		{"", "string", 0},
		{"a\x00b", "string", 3},
		{"ü😀", "string", 3},
		{"\xed\xa0\xbd", "string", 1},
		{strings.Repeat("long ", 30_000), "string", 150_000},
		{0.0, "number", 0},
		{-1.5, "number", 0},
		{1e300, "number", 0},
		{float64(1 << 31), "number", 0},
		{true, "boolean", 0},
		{false, "boolean", 0},
		{nil, "undefined", 0},
	} {
		back, err := e.Call(echo, c.value)
		if err != nil {
			t.Errorf("%.20q: %v", c.value, err)
		}
		if diff := cmp.Diff([]any{c.value, c.value, c.kind, c.size}, append([]any{back}, got...)); diff != "" {
			t.Errorf("%.20q (-want +got):\n%s", c.value, diff)
		}
	}
	if back := mustRun(t, e, "return echo({ toString() { throw 1 } })"); back != nil {
		t.Errorf("an object is converted to %v, want nil", back)
	}
	if back := mustRun(t, e, "try { fail() } catch (e) { return e.name + ': ' + e.message }"); back != "InternalError: 50 % of " {
		t.Errorf("an error from Go is thrown as %q", back)
	}
	if back, err := e.Call(echo, "a\xffb"); err != nil || back != "a\uFFFDb" {
		t.Errorf("a byte that is not UTF-8 is converted to %q, %v", back, err)
	}
}

// A thrown value is described as far as possible, even if its getters throw.
func TestThrown(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for source, want := range map[string]string{
		"throw new TypeError('wrong')": "TypeError|wrong|TypeError: wrong",
		"throw 'text'":                 "||text",
		"throw null":                   "||null",
		"throw { get name() { throw 1 }, toString() { throw 2 } }":   "||",
		"throw { name: 7, message: { }, toString() { return 'me' }}": "||me",
		"undefined.x": "TypeError|cannot read property 'x' of undefined|TypeError: cannot read property 'x' of undefined",
	} {
		_, err := runFunction(t, e, source)
		var thrown *Error
		if !errors.As(err, &thrown) {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := fmt.Sprintf("%s|%s|%s", thrown.Name, thrown.Message, thrown); got != want {
			t.Errorf("%s gives %q, want %q", source, got, want)
		}
	}
	_, err := e.Eval("broken.js", "\n\n  let = = 1")
	var thrown *Error
	if !errors.As(err, &thrown) || thrown.Name != "SyntaxError" || thrown.File != "broken.js" || thrown.Line != 3 || thrown.Column == 0 {
		t.Errorf("the error for a source with a syntax error is %+v", err)
	}
}

// Modules are loaded only by Load, with the names that Resolve returns.
func TestModules(t *testing.T) {
	t.Parallel()
	modules := map[string]string{"main": "import { n } from './lib'; export default n", "lib": "export const n = 1"}
	e := newEngine(t, Options{
		Resolve: func(_, name string) (string, error) { return strings.TrimPrefix(name, "./"), nil },
		Load: func(name string) (string, error) {
			if text, ok := modules[name]; ok {
				return text, nil
			}
			return "", errors.New("no module " + name)
		},
	})
	if err := e.Parse("test.js", "import 'main'"); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ source, want string }{
		{"import 'absent'", "module load failed: no module absent"},
		{"import {", ""},
	} {
		var thrown *Error
		if err := e.Parse("test.js", c.source); !errors.As(err, &thrown) || c.want != "" && thrown.Message != c.want {
			t.Errorf("%s: %v", c.source, err)
		}
	}
	alone := newEngine(t, Options{})
	if err := alone.Parse("test.js", "import 'main'"); err == nil {
		t.Error("an engine without Load imported a module")
	}
}
