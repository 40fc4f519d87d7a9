package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
)

// A script returns its value in each form of its source.
func TestForms(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	const library = `export const twice = (n) => 2 * n; export default { name: "lib" };`
	for _, test := range []struct {
		name, source string
		args         []string
		want         string
	}{
		{name: "body", source: `return context.a + 1`, args: []string{`{"a":1}`}, want: `2`},
		{name: "body with await", source: "const x = await sleep(1);\nreturn {x: x === undefined}", want: `{"x":true}`},
		{name: "body without return", source: `context.a = 2`, args: []string{`{"a":1}`}},
		{name: "body that ends in a comment", source: `return 1 // done`, want: `1`},
		{name: "body that imports", source: `const { twice } = await import("lib.js"); return twice(4)`, want: `8`},
		{name: "body with module keywords in comments and strings", source: "// export default\nconst s = 'import x from y';\nreturn s.length", want: `15`},
		{name: "empty", source: ``},
		{name: "default function", source: `export default (a, b) => a - b`, args: []string{`5`, `3`}, want: `2`},
		{name: "default async function", source: `export default async function (a) { await null; return a }`, args: []string{`"x"`}, want: `"x"`},
		{name: "minified module", source: `const a=()=>7;export{a as default}`, want: `7`},
		{name: "imports of the library", source: `import lib, { twice } from "lib.js"; export default () => [lib.name, twice(2)]`, want: `["lib",4]`},
		{name: "relative import", source: `import { twice } from "./lib.js"; export default () => twice(3)`, want: `6`},
		{name: "await in a module", source: `const x = await Promise.resolve(9); export default () => x`, want: `9`},
		{name: "undefined", source: `return undefined`},
		{name: "null", source: `return null`, want: `null`},
		{name: "not a number", source: `return NaN`, want: `null`},
		{name: "dates", source: `return new Date(0)`, want: `"1970-01-01T00:00:00.000Z"`},
		{name: "half a character", source: `return "\ud800"`, want: `"\ud800"`},
		{name: "characters", source: `return context + "\u0000é😀"`, args: []string{`"ß\u0000"`}, want: `"ß\u0000\u0000é😀"`},
		{
			name: "exotic names", source: `return [Object.keys(context), context.__proto__, {}.x, context.constructor]`,
			args: []string{`{"__proto__":{"x":1},"constructor":2,"":3}`}, want: `[["__proto__","constructor",""],{"x":1},null,2]`,
		},
		{name: "endless async function that is not awaited", source: `(async () => { for (;;) await null })(); return 1`, want: `1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := withArgs(newCall(test.source), test.args...)
			c.Library = map[string]string{"lib.js": library}
			if got := runValue(t, p, c); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// Changes to the arguments are returned. Numbers that the script did not change keep all
// digits.
func TestArgumentsAreReturned(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	c := withArgs(newCall(`context.b = [1]; delete context.a`), `{"a":1}`)
	r := runCall(t, p, c)
	if got := string(r.Args[0]); got != `{"b":[1]}` {
		t.Errorf("got %s", got)
	}
	same := `{"id":12345678901234567890}`
	c = withArgs(newCall(`return 1`), same)
	if got := string(runCall(t, p, c).Args[0]); !strings.Contains(got, "12345678901234567890") {
		t.Errorf("a number that the script did not change became %s", got)
	}
}

// Errors have a kind and a message, and most have the position in the user's own file.
func TestErrors(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	for _, test := range []struct {
		name, source string
		args         []string
		kind         sandbox.Kind
		message      string // message is a part of the message
		file         string
		line, column int
	}{
		{name: "exception in a body", source: "let a = 1;\n  a.b.c", kind: sandbox.Exception, message: "TypeError", line: 2, column: 6},
		{name: "exception in the first line", source: `null.x`, kind: sandbox.Exception, message: "TypeError", line: 1, column: 5},
		{name: "exception in a module", source: "export default () => {\n  throw new RangeError('out')\n}", kind: sandbox.Exception, message: "RangeError: out", line: 2, column: 23},
		{name: "exception after an await", source: "await sleep(1);\nthrow new Error('late')", kind: sandbox.Exception, message: "Error: late", line: 2, column: 16},
		{name: "exception while loading", source: "export default () => 1;\nnull.x", kind: sandbox.Exception, message: "TypeError", line: 2, column: 5},
		{name: "exception in the library", source: `import { f } from "lib.js"; export default () => f()`, kind: sandbox.Exception, message: "lib", file: "lib.js", line: 2, column: 18},
		{name: "thrown text", source: `throw "just so"`, kind: sandbox.Exception, message: "just so"},
		{name: "thrown object", source: `throw {code: 7}`, kind: sandbox.Exception, message: "{ code: 7 }"},
		{name: "own error", source: "class Mine extends Error { name = 'Mine' }\nthrow new Mine('x')", kind: sandbox.Exception, message: "Mine: x", line: 1},
		{name: "error with a forged stack", source: `const e = new Error("x"); e.stack = "at y (hook.js:99:99)\n"; throw e`, kind: sandbox.Exception, message: "Error: x", line: 1},
		{name: "rejected promise", source: `return Promise.reject(new TypeError("no"))`, kind: sandbox.Exception, message: "TypeError: no", line: 1},
		{name: "bad JSON in a script", source: "\nJSON.parse('{')", kind: sandbox.Exception, message: "SyntaxError", line: 2},
		{name: "syntax error in a body", source: "let a = 1;\nlet b = ;", kind: sandbox.Syntax, message: "SyntaxError", line: 2, column: 9},
		{name: "body without a closing brace", source: "if (true) {\n  a()", kind: sandbox.Syntax, message: "SyntaxError", line: 2},
		{name: "syntax error in a module", source: "export default function () {\n  return 1 +;\n}", kind: sandbox.Syntax, message: "SyntaxError", line: 2, column: 13},
		{name: "syntax error in the library", source: `import "bad.js"`, kind: sandbox.Syntax, message: "SyntaxError", file: "bad.js", line: 2},
		{name: "unknown module", source: "\nimport fs from 'fs';\nexport default () => 1", kind: sandbox.Syntax, message: "cannot import 'fs': only 'bad.js', 'lib.js' can be imported", line: 2, column: 16},
		{name: "unknown module by import()", source: `await import("fs")`, kind: sandbox.Exception, message: "cannot import 'fs'"},
		{name: "own name", source: `await import("hook.js")`, kind: sandbox.Exception, message: "cannot import 'hook.js'"},
		{name: "engine's name", source: `await import("<eval>")`, kind: sandbox.Exception, message: "cannot import '<eval>'"},
		{name: "missing export", source: `import { g } from "lib.js"; export default () => 1`, kind: sandbox.Syntax, message: "'g'"},
		{name: "no default", source: `export const a = 1`, kind: sandbox.Exception, message: "no default function"},
		{name: "default that is no function", source: `export default {}`, kind: sandbox.Exception, message: "no default function"},
		{name: "circular", source: `const a = {}; a.a = a; return a`, kind: sandbox.Unserialisable, message: "circular"},
		{name: "big integer", source: `return 1n`, kind: sandbox.Unserialisable, message: "BigInt"},
		{name: "function", source: `return () => 1`, kind: sandbox.Unserialisable, message: "function"},
		{name: "circular argument", source: `context.a = context`, args: []string{`{}`}, kind: sandbox.Unserialisable, message: "circular"},
		{name: "broken toJSON", source: "return { toJSON() { throw new Error('mine') } }", kind: sandbox.Unserialisable, message: "mine", line: 1},
		{name: "argument that is not JSON", source: `return 1`, args: []string{`{`}, kind: sandbox.Rejected, message: "not JSON"},
		{name: "empty argument", source: `return 1`, args: []string{``}, kind: sandbox.Rejected, message: "not JSON"},
		{name: "promise that never settles", source: `await new Promise(() => {})`, kind: sandbox.Timeout, message: "can no longer settle"},
		{name: "code from strings", source: `return (() => {}).constructor("return 1")()`, kind: sandbox.Exception, message: "from strings", line: 1},
		{name: "eval", source: `return eval("1")`, kind: sandbox.Exception, message: "eval", line: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := withArgs(newCall(test.source), test.args...)
			c.Library = map[string]string{
				"lib.js": "export function f() {\n  throw new Error('lib')\n}",
				"bad.js": "export const a = 1;\nconst = 2",
			}
			e := runError(t, p, c)
			if e.Kind != test.kind || !strings.Contains(e.Message, test.message) {
				t.Errorf("got %q %q, want %q with %q", e.Kind, e.Message, test.kind, test.message)
			}
			if test.line == 0 {
				return
			}
			if test.file == "" {
				test.file = "hook.js"
			}
			if e.File != test.file || e.Line != test.line || (test.column != 0 && e.Column != test.column) {
				t.Errorf("at %s:%d:%d, want %s:%d:%d\n%s", e.File, e.Line, e.Column, test.file, test.line, test.column, e.Stack)
			}
		})
	}
}

// Errors of a script that was compiled from TypeScript have the position in the TypeScript.
func TestSourceMap(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	text, err := os.ReadFile(filepath.Join("testdata", "compiled.js"))
	if err != nil {
		t.Fatal(err)
	}
	e := runError(t, p, withArgs(newCall(string(text)), `{"request":{"method":"tools/call"}}`))
	if e.File != "compiled.ts" || e.Line != 13 || e.Column != 33 {
		t.Errorf("at %s:%d:%d, want compiled.ts:13:33\n%s", e.File, e.Line, e.Column, e.Stack)
	}
	if !strings.Contains(e.Stack, "compiled.ts:17:") {
		t.Errorf("the stack does not contain the caller:\n%s", e.Stack)
	}
}

// Invalid calls are refused before anything runs.
func TestRejected(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Command: []string{"/does/not/exist"}}) // the test fails if the pool starts a worker
	for _, test := range []struct {
		name    string
		call    sandbox.Call
		message string
	}{
		{"other hash", sandbox.Call{Module: sandbox.Module{Source: "a", Hash: sandbox.Hash("b")}}, "hash"},
		{"long source", newCall(strings.Repeat(" ", sandbox.MaxSource+1)), "over the limit"},
		{"strange name", sandbox.Call{Module: sandbox.Module{Name: "a\nb"}}, "invalid module name"},
		{"name reserved by the engine", sandbox.Call{Module: sandbox.Module{Name: "<eval>"}}, "invalid module name"},
		{"strange parameter", sandbox.Call{Module: sandbox.Module{Params: []string{"a){"}}}, "invalid argument name"},
		{"module with the same name", sandbox.Call{Module: sandbox.Module{Name: "a"}, Library: map[string]string{"a": ""}}, "own name"},
		{"long input", withArgs(newCall(""), `"`+strings.Repeat("x", sandbox.MaxInput)+`"`), "over the limit"},
		{"too much memory", sandbox.Call{Limits: sandbox.Limits{Memory: 1 << 40}}, "limit for memory"},
		{"negative time", sandbox.Call{Limits: sandbox.Limits{Wall: -time.Second}}, "limit for wall"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := runError(t, p, test.call)
			if e.Kind != sandbox.Rejected || !strings.Contains(e.Message, test.message) {
				t.Errorf("got %q %q, want it rejected with %q", e.Kind, e.Message, test.message)
			}
		})
	}
}

// Check reports errors with positions and does not run the script.
func TestCheck(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	check := func(source string) []guideway.Diagnostic {
		found, err := p.Check(t.Context(), sandbox.Module{Name: "a.js", Source: source}, map[string]string{"b.js": "let"})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := []guideway.Diagnostic{{
		Severity: guideway.SeverityError, Code: "script-syntax", File: "a.js", Line: 2, Column: 1,
		Message: "SyntaxError: unexpected token in expression: ')'",
	}}
	if diff := cmp.Diff(want, check("for (;;);\n)")); diff != "" {
		t.Error(diff)
	}
	if found := check("while (true);\nreturn 1"); len(found) != 1 || found[0].File != "b.js" {
		t.Errorf("got %v, want one diagnostic of b.js", found)
	}
}

// The same clock and seed produce the same run; other seeds differ.
func TestFixed(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	run := func(seed uint64) string {
		c := newCall(`const a = Date.now(); await sleep(3_600_000);
			return [new Date(a).toISOString(), new Date().getTime() - a, Date().slice(0, 15), Math.random(), Math.random()]`)
		c.Fixed = &sandbox.Fixed{Now: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), Seed: seed}
		return runValue(t, p, c)
	}
	first := run(1)
	if !strings.HasPrefix(first, `["2026-02-03T04:05:06.000Z",3600000,"Tue Feb 03 2026"`) {
		t.Errorf("got %s", first)
	}
	if again := run(1); again != first {
		t.Errorf("the same seed returned %s, then %s", first, again)
	}
	if other := run(1 << 40); other == first {
		t.Errorf("a different seed returned the same %s", other)
	}
	if real := runValue(t, p, newCall(`return new Date() instanceof Date && Date.now() > 1.7e12 && Math.random() < 1`)); real != "true" {
		t.Errorf("a call without a fixed clock returned %s", real)
	}
}
