package sandbox_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
)

// A script has exactly the listed globals. None gives access to files, the network, the
// environment or the process, and none creates code from strings.
func TestScriptsHaveNoAccessOutside(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	names := runValue(t, p, newCall(`return Object.getOwnPropertyNames(globalThis).sort().join(" ")`))
	want := `"AggregateError Array ArrayBuffer BigInt BigInt64Array BigUint64Array Boolean DataView Date Error EvalError ` +
		`Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array InternalError Iterator ` +
		`JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol ` +
		`SyntaxError TextDecoder TextEncoder TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray ` +
		`WeakMap WeakSet atob audit base64 btoa console decodeURI decodeURIComponent encodeURI encodeURIComponent ` +
		`escape globalThis isFinite isNaN mapStrings namesSecret parseFloat parseInt queueMicrotask redact sha256 sleep state structuredClone ` +
		`undefined unescape"`
	if names != want {
		t.Errorf("the globals are\n%s\nwant\n%s", names, want)
	}
	for _, c := range []string{
		`(() => {}).constructor("return 1")()`,
		`(async () => {}).constructor("return 1")()`,
		`(function* () {}).constructor("return 1")()`,
		`(async function* () {}).constructor("return 1")()`,
		`Function("return 1")()`,
		`new Function("return 1")()`,
		`Reflect.construct(Object.getPrototypeOf(async () => {}).constructor, ["return 1"])`,
		`console.log.constructor("return 1")()`,
		`Object.getPrototypeOf(sleep(1)).constructor.constructor("return 1")()`,
	} {
		if e := runError(t, p, newCall("return "+c)); e.Kind != sandbox.Exception || !strings.Contains(e.Message, "from strings") {
			t.Errorf("%s: %s %s", c, e.Kind, e.Message)
		}
	}
}

// The globals are frozen, but a script's own objects may have properties of the same names.
func TestGlobalsAreFrozen(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	for _, c := range []string{
		`globalThis.x = 1`, `Array.prototype.x = 1`, `Object.prototype.x = 1`, `JSON.parse = 1`, `Math.random = 1`,
		`Promise.prototype.then = 1`, `Object.prototype.toString = 1`, `console.log = 1`, `String.prototype.trim = 1`,
		`Date.now = 1`, `Error.prototype.message = 1`, `(async () => {}).__proto__.x = 1`, `[][Symbol.iterator]().__proto__.x = 1`,
		`Function.prototype.call = 1`, `console.log.x = 1`, `base64.x = 1`, `state.x = 1`, `state.client.get = 1`, `Uint8Array.__proto__.prototype.x = 1`,
		`delete Array.prototype.map`, `Object.setPrototypeOf(Array.prototype, {})`,
		`Object.defineProperty(Map.prototype, "get", { value: 1 })`,
	} {
		if e := runError(t, p, newCall(c)); e.Kind != sandbox.Exception || !strings.Contains(e.Message, "TypeError") {
			t.Errorf("%s: %s %s", c, e.Kind, e.Message)
		}
	}
	if got := runValue(t, p, newCall(`
		const o = {}; o.toString = () => "mine"; o.constructor = 1;
		class Mine extends Error { constructor(m) { super(m); this.name = "Mine"; this.message = m + "!"; } }
		function Old() {} Old.prototype.toString = () => "old"; Old.prototype.constructor = Old;
		return [String(o), o.constructor, String(new Mine("x")), String(new Old()), Object.keys(o)]`)); got !=
		`["mine",1,"Mine: x!","old",["toString","constructor"]]` {
		t.Errorf("got %s", got)
	}
}

// A call leaves no state for the next one: neither in globals nor in modules or the
// library.
func TestCallsLeaveNoTraces(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	c := newCall(`import { kept } from "lib.js";
		let calls = 0;
		export default (x) => {
			calls++; kept.push(x);
			try { globalThis.left = x } catch {}
			try { Object.assign(Array.prototype, { left: x }) } catch {}
			for (const k of [Math, JSON, console, Symbol.iterator, Symbol.for("left")]) try { k.left = x } catch {}
			sleep(0).then(() => { kept.push("late") });
			return [calls, kept, typeof left, [].left === undefined, Math.left === undefined];
		}`)
	c.Library = map[string]string{"lib.js": "export const kept = []"}
	for _, x := range []string{`"a"`, `"b"`, `"c"`} {
		if got := runValue(t, p, withArgs(c, x)); got != `[1,[`+x+`],"undefined",true,true]` {
			t.Errorf("got %s", got)
		}
	}
}

// A script cannot fake messages of the worker.
func TestMessagesCannotBeForged(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{Workers: 1, Burst: 1})
	r := runCall(t, p, newCall(`
		const frame = "GWS\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00";
		console.log(frame); console.error("\n" + frame.repeat(50));
		return [typeof __report, typeof print, typeof std, typeof os, frame]`))
	if want := `["undefined","undefined","undefined","undefined",`; !strings.HasPrefix(string(r.Value), want) {
		t.Errorf("got %s", r.Value)
	}
	if len(r.Console) != 2 {
		t.Errorf("got %d lines", len(r.Console))
	}
}

// Console lines show the contents of values, and their size is limited. An error has the
// lines that were written before it.
func TestConsole(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	r := runCall(t, p, newCall(`
		const circle = { a: [1, "x", null, undefined, 2n, Symbol("s")] }; circle.self = circle;
		console.log("text", 1, circle);
		console.info(new Map([[1, { b: 2 }]]), new Set(["y"]), new Date(0), /r/g);
		console.warn([], {}, new Uint8Array(3), () => 1, class Mine {}, new (class Own { z = 1 })());
		console.error(new TypeError("bad").name, null, undefined);
		console.debug({ a: { b: { c: { d: { e: 1 } } } } });
		console.log({ get bad() { throw 1 } });`))
	var got []string
	for _, l := range r.Console {
		got = append(got, l.Level+" "+l.Text)
	}
	want := `log text 1 { a: [1, "x", null, undefined, 2n, Symbol(s)], self: [circular] }
info Map { 1 => { b: 2 } } Set { "y" } 1970-01-01T00:00:00.000Z /r/g
warn [] {} Uint8Array [0, 0, 0] [function (anonymous)] [function Mine] Own { z: 1 }
error TypeError null undefined
debug { a: { b: { c: { d: {...} } } } }
log [cannot be shown]`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	c := newCall(`for (let i = 0; i < 10; i++) console.log("ü".repeat(30))`)
	c.Limits.Console = 100
	r = runCall(t, p, c)
	size := 0
	for _, l := range r.Console {
		size += len(l.Text)
	}
	if size > 100 || size < 90 || !r.Truncated {
		t.Errorf("got %d bytes, truncated %v", size, r.Truncated)
	}
	if e := runError(t, p, newCall(`console.log("before"); null.x`)); len(e.Console) != 1 || e.Console[0].Text != "before" {
		t.Errorf("the error has the console lines %v", e.Console)
	}
	if e := runError(t, p, newCall(`console.log("before"); for (;;);`)); len(e.Console) != 1 {
		t.Errorf("the timeout has the console lines %v", e.Console)
	}
}

// The utilities behave as declared.
func TestUtilities(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	for _, test := range []struct{ source, want string }{
		{`sha256("abc")`, `"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"`},
		{`sha256(new TextEncoder().encode("abc")) === sha256("abc")`, `true`},
		{`base64.encode("é😀")`, `"w6nwn5iA"`},
		{`base64.decode("w6nwn5iA")`, `"é😀"`},
		{`[...base64.bytes("AQID")]`, `[1,2,3]`},
		{`base64.encode(new Uint8Array([1, 2, 3]).subarray(1))`, `"AgM="`},
		{`btoa("\xe9") + atob("6Q==")`, `"6Q==é"`},
		{`[...new TextEncoder().encode("\ud800é")]`, `[239,191,189,195,169]`},
		{`new TextDecoder().decode(new Uint8Array([0xc3, 0xa9, 0xff]))`, `"é�"`},
		{`mapStrings({ a: ["x", 1, { __proto__: null, ["__proto__"]: "x" }] }, (s) => s + "!")`, `{"a":["x!",1,{"__proto__":"x!"}]}`},
		{
			`(() => { const a = { d: new Date(1), m: new Map([[1, [2]]]), s: new Set([3]), u: new Uint8Array([4]) }; a.a = a;
			const b = structuredClone(a); return [b !== a, b.a === b, b.d.getTime(), [...b.m], [...b.s], [...b.u], b.m.get(1) !== a.m.get(1)] })()`,
			`[true,true,1,[[1,[2]]],[3],[4],true]`,
		},
		{`(() => { try { structuredClone({ f() {} }) } catch (e) { return e.name } })()`, `"TypeError"`},
		{`await (async () => { const t = Date.now(); await Promise.all([sleep(5), sleep(10), sleep(1)]); return Date.now() - t >= 9 })()`, `true`},
		{`await (async () => { const order = []; await Promise.all([30, 10, 20].map(async (ms) => { await sleep(ms); order.push(ms) })); return order })()`, `[10,20,30]`},
	} {
		if got := runValue(t, p, newCall("return "+test.source)); got != test.want {
			t.Errorf("%s: got %s, want %s", test.source, got, test.want)
		}
	}
	r := runCall(t, p, newCall(`audit({ a: 1 }); audit("two"); try { audit(undefined) } catch (e) { return e.name }`))
	if len(r.Audit) != 2 || string(r.Audit[0]) != `{"a":1}` || string(r.Audit[1]) != `"two"` || string(r.Value) != `"TypeError"` {
		t.Errorf("got %s and %s", r.Audit, r.Value)
	}
}

// Numbers beyond JavaScript's precision keep all their digits.
func TestNumbersKeepDigits(t *testing.T) {
	t.Parallel()
	p := newPool(t, sandbox.Options{})
	for _, test := range []struct{ source, arg, want string }{
		{`return context`, `{"id":12345678901234567890}`, `{"id":12345678901234567890}`},
		{`context.b = 1; return context.id`, `{"id":9007199254740993}`, `9007199254740993`},
		{`return context.reverse()`, `[9007199254740993,1.234567890123456789,"9007199254740993"]`, `["9007199254740993",1.234567890123456789,9007199254740993]`},
		{`return context`, `[1234567890123456789,1234567890123456788]`, `[1234567890123456789,1234567890123456788]`},
		{`return context`, `[9007199254740992,9007199254740993]`, `[9007199254740992,9007199254740993]`},
		{`return context`, `[9007199254740993,9007199254740992]`, `[9007199254740993,9007199254740992]`},
		{`return context`, `[1,1.00000000000000001]`, `[1,1.00000000000000001]`},
		{`return context[0]`, `[9007199254740992,9007199254740993]`, `9007199254740992`},
		{`return context.id + 2`, `{"id":9007199254740993}`, `9007199254740994`},
		{`return context`, `[0.1,1e21,1e-7,-0.5,100]`, `[0.1,1e+21,1e-7,-0.5,100]`},
		{`return context.s`, `{"s":"\"12345678901234567890","n":12345678901234567890}`, `"\"12345678901234567890"`},
	} {
		if got := runValue(t, p, withArgs(newCall(test.source), test.arg)); got != test.want {
			t.Errorf("%s of %s: got %s, want %s", test.source, test.arg, got, test.want)
		}
	}
}
