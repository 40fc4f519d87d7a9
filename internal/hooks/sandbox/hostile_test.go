package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
)

// attack is a hostile script and the kinds of errors that it may end with. If there are
// none, it must return a result.
type attack struct {
	name, source string
	kinds        []sandbox.Kind
}

// attacks returns hostile scripts, including some that are known to crash JavaScript
// engines.
func attacks() []attack {
	timeout := []sandbox.Kind{sandbox.Timeout}
	memory := []sandbox.Kind{sandbox.Memory}
	tooMuch := []sandbox.Kind{sandbox.Timeout, sandbox.Memory}
	stack := []sandbox.Kind{sandbox.Stack}
	deep := []sandbox.Kind{sandbox.Stack, sandbox.Timeout, sandbox.Memory}
	return []attack{
		// Endless loops of every form.
		{"loop", `while (true);`, timeout},
		{"loop that catches errors", `while (true) try { while (true); } catch {} finally { while (true); }`, timeout},
		{"loop in finally", `try { return 1 } finally { for (;;); }`, timeout},
		{"loop in an async finally", `async function f() { try { await null; for (;;); } finally { for (;;); } } return f()`, timeout},
		{"caught promise, then a loop", `return new Promise(() => { for (;;); }).catch(() => { for (;;); }).finally(() => { for (;;); })`, timeout},
		{"loop of awaits", `for (;;) await null`, timeout},
		{"microtasks that schedule themselves", `const f = () => queueMicrotask(f); f(); return new Promise(() => {})`, timeout},
		{"thenable that never settles", `return { then() {} }`, timeout},
		{"thenable that returns thenables", `const t = { then(f) { f(t) } }; return t`, timeout},
		{"promise that never settles", `await new Promise(() => {})`, timeout},
		{"sleeper", `await sleep(1e9)`, timeout},
		{"sleep in a loop", `for (;;) await sleep(1)`, timeout},
		{"generator", `for (const x of (function* () { for (;;) yield 1 })()); return 1`, timeout},
		{"async generator", `for await (const x of (async function* () { for (;;) yield 1 })()); return 1`, timeout},
		{"iterator without end", `return [...{ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) }]`, tooMuch},
		{"getter on the result", `return { get x() { for (;;); } }`, timeout},
		{"toJSON", `return { toJSON() { for (;;); } }`, timeout},
		{"toString in console", `console.log({ get a() { for (;;); } })`, timeout},
		{"message of an error", `throw Object.defineProperty(new Error("x"), "message", { get() { for (;;); } })`, timeout},
		{"stack of an error", `throw Object.defineProperty(new Error("x"), "stack", { get() { for (;;); } })`, timeout},
		{"thrown proxy", `throw new Proxy({}, { get() { for (;;); }, getPrototypeOf() { for (;;); }, ownKeys() { for (;;); } })`, timeout},
		{"proxy as result", `return new Proxy({}, { ownKeys() { for (;;); } })`, timeout},
		{"loop in a module", "for (;;);\nexport default () => 1", timeout},
		{"await in a module", "await new Promise(() => {});\nexport default () => 1", timeout},
		{"computed property", "export default { get x() { for (;;); }, [(() => { for (;;); })()]: 1 }", timeout},

		// Slow built-in functions.
		{"regular expression, backreference", `return /^((a+)+)\1$/.test("a".repeat(50) + "b")`, timeout},
		{"regular expression, nested", `return /(x+x+)+y/.test("x".repeat(50))`, timeout},
		{"regular expression, replace", `return "x".repeat(60).replace(/(x*)*y/g, "")`, timeout},
		{"sort with a loop", `return [1, 2].sort(() => { for (;;); })`, timeout},
		{"sort of a large array", `const a = []; for (let i = 0; i < 1e6; i++) a.push(i % 7); for (;;) a.sort()`, tooMuch},
		{"holes", `const a = []; a.length = 2 ** 32 - 1; return a.indexOf(1)`, timeout},
		{"sort of a sparse array", `const a = []; a[4294967290] = 1; return a.sort().length`, timeout},
		{"big integers", `let n = 3n; for (;;) n = n * n`, append(tooMuch, sandbox.Exception)},
		{"large BigInt to string", `return String(7n ** 2000000n).length`, append(tooMuch, sandbox.Exception)},
		{"nested joins", `let a = ["x"]; for (let i = 0; i < 40; i++) a = [a, a]; return String(a)`, tooMuch},
		{"stringify of shared references", `let a = {}; for (let i = 0; i < 60; i++) a = { a, b: a }; return a`, append(deep, sandbox.Output)},
		{"structuredClone of shared references", `let a = []; for (let i = 0; i < 100; i++) a = [a, a]; return structuredClone(a).length`, nil},
		{"mapStrings of shared references", `let a = ["x"]; for (let i = 0; i < 60; i++) a = [a, a]; return mapStrings(a, (s) => s)`, tooMuch},
		{"console.log of shared references", `let a = {}; for (let i = 0; i < 60; i++) a = { a, b: a }; console.log(a); return 1`, nil},
		{"normalize", `let s = "\u0344".repeat(1e6); for (;;) s.normalize("NFD")`, tooMuch},
		{"date", `for (;;) new Date("x".repeat(1000))`, timeout},

		// Memory.
		{"array that fills", `const a = []; for (;;) a.push(new Array(5e7).fill(1))`, memory},
		{"array that grows", `const a = []; for (;;) a.push(a.length)`, tooMuch},
		{"string that doubles", `let s = "x"; for (;;) s += s`, append(memory, sandbox.Exception, sandbox.Timeout)},
		{"string that repeats", `return "x".repeat(2 ** 30).length`, append(memory, sandbox.Exception)},
		{"string that pads", `return "x".padStart(2 ** 30).length`, append(memory, sandbox.Exception)},
		{"typed arrays", `const a = []; for (;;) a.push(new Uint8Array(64 << 20))`, memory},
		{"buffers that resize", `const b = new ArrayBuffer(1, { maxByteLength: 2 ** 31 - 1 }); b.resize(2 ** 31 - 1); return 1`, append(memory, sandbox.Exception)},
		{"map", `const m = new Map(); for (let i = 0; ; i++) m.set(i, {})`, tooMuch},
		{"symbols", `const a = []; for (let i = 0; ; i++) a.push(Symbol("s" + i))`, tooMuch},
		{"property names", `const o = {}; for (let i = 0; ; i++) o["k" + i] = i`, tooMuch},
		{"closures", `let f = () => 1; for (;;) { const g = f; f = () => g }`, tooMuch},
		{"promises", `const a = []; for (;;) a.push(new Promise(() => {}))`, tooMuch},
		{"endless promises", `for (;;) (async () => { await null; await null })()`, tooMuch},
		{"sleepers", `for (let i = 0; ; i++) sleep(i)`, tooMuch},
		{"caught out-of-memory errors", `const a = []; for (;;) try { for (;;) a.push(new Array(1e6).fill(0)) } catch {}`, timeout},
		{"spread", `return Math.max(...new Array(1e7))`, append(deep, sandbox.Exception)},
		{"split", `return "x".repeat(3e7).split("").length`, tooMuch},
		{"JSON.parse of brackets", `return JSON.parse("[".repeat(5e6))`, append(deep, sandbox.Exception)},
		{"JSON.parse of nested arrays", `return JSON.parse("[".repeat(1e6) + "]".repeat(1e6))`, append(deep, sandbox.Exception)},
		{"big result", `return "x".repeat(2 << 20)`, []sandbox.Kind{sandbox.Output}},
		{"large argument kept", `const a = []; a.length = 5e6; a.fill("xxxxxxxxxx"); return a`, append(memory, sandbox.Output)},
		{"endless audit records", `for (;;) audit("x".repeat(1000))`, []sandbox.Kind{sandbox.Output}},

		// Depth.
		{"recursion", `const f = () => f(); f()`, stack},
		{"recursion that catches errors", `const f = () => { try { f() } catch { f() } }; f()`, append(timeout, sandbox.Stack)},
		{"recursion through a getter", `const o = { get x() { return this.x } }; o.x`, stack},
		{"recursion through a proxy", `const p = new Proxy({}, { get: (t, k) => p[k] }); p.x`, stack},
		{"chain of proxies", `let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x`, deep},
		{"chain of prototypes", `let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); return typeof o.x`, append(tooMuch, "")},
		{"bound functions", `let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f()`, deep},
		{"deep result", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a`, deep},
		{"deep text", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return String(a)`, deep},
		{"deep clone", `let a = []; for (let i = 0; i < 1e5; i++) a = [a]; structuredClone(a)`, deep},
		{"toString of toString", `const o = { toString() { return "" + o } }; return "" + o`, stack},
		{"toJSON of toJSON", `const o = { toJSON() { return { x: o } } }; return o`, append(deep, sandbox.Output)},
		{"replace with itself", `const f = () => "a".replace(/a/, f); f()`, stack},
		{"sort in sort", `const f = () => [2, 1].sort(f); f()`, stack},
		{"async recursion", `const f = async () => { await f() }; await f()`, deep},
		{"deep regular expression", `return new RegExp("(".repeat(1e5) + ")".repeat(1e5)).test("")`, append(deep, sandbox.Exception)},
		{"apply of apply", `const f = () => f.apply.call(f, null, []); f()`, stack},
		{"destructors", `let l = null; for (let i = 0; i < 2e5; i++) l = { l }; l = null; return 1`, append(tooMuch, "")},
		{"source of brackets", strings.Repeat("(", 200_000), []sandbox.Kind{sandbox.Syntax, sandbox.Stack}},
		{"source of arrays", "return " + strings.Repeat("[", 200_000), []sandbox.Kind{sandbox.Syntax, sandbox.Stack, sandbox.Memory}},
		{"source of functions", "return " + strings.Repeat("()=>", 100_000) + "1", []sandbox.Kind{sandbox.Syntax, sandbox.Stack, sandbox.Memory, ""}},
		{"source of templates", "return " + strings.Repeat("`${", 100_000), []sandbox.Kind{sandbox.Syntax, sandbox.Stack, sandbox.Memory, sandbox.Timeout}},

		// Output.
		{"console flood", `for (let i = 0; i < 5000; i++) console.log("x".repeat(100)); return 1`, nil},
		{"console giant", `console.log("x".repeat(1e7)); return 1`, nil},
		{"endless console flood", `for (;;) console.log("x")`, timeout},
	}
}

// testLimits returns small limits if a timeout ends the attack, so that the test is short,
// and large ones if another limit must end it, even on a busy machine.
func (a attack) testLimits() sandbox.Limits {
	l := sandbox.Limits{Wall: 300 * time.Millisecond, CPU: 250 * time.Millisecond, Memory: 24 << 20, Output: 1 << 20}
	if !slices.Contains(a.kinds, sandbox.Timeout) {
		l.Wall, l.CPU = 30*time.Second, 30*time.Second
	}
	return l
}

// overrun is the maximum time by which a call may exceed its timeout.
const overrun = 250 * time.Millisecond

// Every attack ends within its limits with an allowed error, and does not affect the next
// script.
func TestAttacksEnd(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	for i, a := range attacks() {
		if testing.Short() && i%5 != 0 {
			continue // the race detector does not cover workers
		}
		t.Run(a.name, func(t *testing.T) {
			c := newCall(a.source)
			c.Limits = a.testLimits()
			var late time.Duration
			for range 3 { // on a busy machine, one attempt may take too long, but not all three
				if err := p.Warm(t.Context()); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err := p.Run(t.Context(), c)
				late = time.Since(began) - c.Limits.Wall
				var kind sandbox.Kind
				var e *sandbox.Error
				if errors.As(err, &e) {
					kind = e.Kind
				} else if err != nil {
					t.Fatal(err)
				}
				want := a.kinds
				if want == nil {
					want = []sandbox.Kind{""}
				}
				if !slices.Contains(want, kind) {
					t.Errorf("the attack ended with %q, want one of %q: %v", kind, want, err)
				}
				if late < overrun {
					break
				}
			}
			if late >= overrun {
				t.Errorf("the attack ended %v after its limit", late)
			}
			if got := runValue(t, p, newCall(`return [typeof x, Object.keys(globalThis).includes("x"), [].concat(1).length]`)); got != `["undefined",false,1]` {
				t.Errorf("the next script sees %s", got)
			}
		})
	}
}

// While one owner's scripts block as many workers as one owner can use, calls of other
// owners run.
func TestOtherOwnersAreServedDuringAttacks(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 4})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var hostile sync.WaitGroup
	for range 12 {
		hostile.Go(func() {
			c := newCall(`for (;;);`)
			c.Owner = "mallory"
			c.Limits = sandbox.Limits{Wall: 30 * time.Second, CPU: 30 * time.Second}
			_, err := p.Run(ctx, c)
			if err == nil {
				t.Error("an endless script ended without an error")
			}
		})
	}
	for range 20 {
		c := newCall(`return "served"`)
		c.Owner = "alice"
		if got := runValue(t, p, c); got != `"served"` {
			t.Errorf("got %s", got)
		}
	}
	cancel()
	hostile.Wait()
}
