// The prelude makes a fresh VM what scripts are promised: it takes away what
// they may not have, adds the small API of ../api.d.ts, freezes the globals and
// returns the driver that the worker calls. It runs before any user code, so
// what it takes hold of at its top is the engine's own.
(function () {
  "use strict";
  const host = {};
  for (const name of ["report", "emit", "audit", "ask", "redact", "namesSecret", "utf8", "text", "sha256"]) {
    host[name] = globalThis["__" + name];
    delete globalThis["__" + name];
  }

  // No code from strings, no shared memory, nothing that tells when garbage is
  // collected.
  for (const name of ["eval", "Atomics", "SharedArrayBuffer", "WeakRef", "FinalizationRegistry"]) {
    delete globalThis[name];
  }
  const functionKinds = [
    function () {},
    async function () {},
    function* () {},
    async function* () {},
  ];
  for (const sample of functionKinds) {
    const proto = Object.getPrototypeOf(sample);
    const blocked = function () {
      throw new TypeError("code cannot be made from strings here");
    };
    Object.defineProperty(blocked, "prototype", { value: proto });
    Object.defineProperty(proto, "constructor", { value: blocked, configurable: true });
    if (proto === Function.prototype) {
      Object.defineProperty(blocked, "name", { value: "Function" });
      globalThis.Function = blocked;
    }
  }

  // The clock and the dice: the real ones unless the call fixes them.
  const RealDate = Date;
  const realNow = Date.now;
  const realRandom = Math.random;
  let clock = null;
  let dice = null;
  const now = () => (clock === null ? realNow() : clock);
  const SandboxDate = function Date(...parts) {
    if (!new.target) return new RealDate(now()).toString();
    return Reflect.construct(RealDate, parts.length ? parts : [now()], new.target);
  };
  Object.defineProperties(SandboxDate, {
    length: { value: 7 },
    prototype: { value: RealDate.prototype, writable: false },
    now: { value: function now_() { return now(); } },
    parse: { value: RealDate.parse },
    UTC: { value: RealDate.UTC },
  });
  Object.defineProperty(SandboxDate.now, "name", { value: "now" });
  RealDate.prototype.constructor = SandboxDate;
  globalThis.Date = SandboxDate;
  Math.random = function random() {
    return dice === null ? realRandom() : dice();
  };

  // sfc32, seeded by two halves of 32 bits.
  function seeded(high, low) {
    let a = high | 0, b = low | 0, c = 0x9e3779b9 | 0, d = 1;
    const next = () => {
      const t = (((a + b) | 0) + d) | 0;
      d = (d + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + t) | 0;
      return (t >>> 0) / 4294967296;
    };
    for (let i = 0; i < 15; i++) next();
    return next;
  }

  // Timers of sleep, by the time that they are due.
  const timers = [];
  function sleep(ms) {
    const wait = Math.max(0, Number(ms) || 0);
    if (clock !== null) {
      clock += wait;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const due = realNow() + wait;
      let at = timers.length;
      while (at > 0 && timers[at - 1].due > due) at--;
      timers.splice(at, 0, { due, resolve });
    });
  }

  // How console shows values.
  const shownDepth = 4, shownItems = 100, shownText = 10000;
  function inspect(value, depth, seen) {
    switch (typeof value) {
      case "string": return depth === 0 ? value : JSON.stringify(value);
      case "bigint": return String(value) + "n";
      case "symbol": return value.toString();
      case "function": return "[function " + (typeof value.name === "string" && value.name || "(anonymous)") + "]";
      case "object": break;
      default: return String(value);
    }
    if (value === null) return "null";
    if (Error.isError(value)) {
      const head = String(value.name) + ": " + String(value.message);
      return depth === 0 && typeof value.stack === "string" && value.stack !== ""
        ? head + "\n" + value.stack.trimEnd() : head;
    }
    if (value instanceof RealDate) return isNaN(value) ? "Invalid Date" : value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (value instanceof Promise) return "Promise {}";
    if (seen.includes(value)) return "[circular]";
    if (depth >= shownDepth) return Array.isArray(value) ? "[...]" : "{...}";
    seen.push(value);
    const parts = [];
    let size = 0, more = 0;
    const add = (part) => {
      if (parts.length >= shownItems || size > shownText) {
        more++;
        return false;
      }
      size += part.length;
      parts.push(part);
      return true;
    };
    const show = (v) => inspect(v, depth + 1, seen);
    let name = "", brackets = "{}";
    if (Array.isArray(value) || ArrayBuffer.isView(value)) {
      brackets = "[]";
      if (!Array.isArray(value)) name = value.constructor.name + " ";
      const length = Math.min(value.length >>> 0, shownItems);
      for (let i = 0; i < length && add(show(value[i])); i++);
      more = (value.length >>> 0) - parts.length;
    } else if (value instanceof Map) {
      name = "Map ";
      for (const [k, v] of value) if (!add(show(k) + " => " + show(v))) break;
    } else if (value instanceof Set) {
      name = "Set ";
      for (const v of value) if (!add(show(v))) break;
    } else {
      const proto = Object.getPrototypeOf(value);
      const made = proto && Object.hasOwn(proto, "constructor") && proto.constructor;
      if (typeof made === "function" && made !== Object && typeof made.name === "string") name = made.name + " ";
      for (const key of Object.keys(value)) {
        if (!add((/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)) + ": " + show(value[key]))) break;
      }
    }
    seen.pop();
    if (more > 0) parts.push("...");
    const inside = parts.join(", ");
    if (inside === "") return name + brackets;
    return brackets === "[]" ? name + "[" + inside + "]" : name + "{ " + inside + " }";
  }

  let muted = false;
  function write(level, values) {
    if (muted) return;
    let line = "";
    for (let i = 0; i < values.length && line.length <= shownText; i++) {
      let text;
      try {
        text = inspect(values[i], 0, []);
      } catch (error) {
        text = "[cannot be shown]";
      }
      line += (i ? " " : "") + text.slice(0, shownText);
    }
    if (!host.emit(level, line)) muted = true;
  }
  const console = {};
  for (const level of ["log", "info", "warn", "error", "debug"]) {
    console[level] = { [level](...values) { write(level, values); } }[level];
  }

  // Pure utilities.
  const bytesOf = (input) => {
    if (input instanceof ArrayBuffer) return new Uint8Array(input);
    if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    return Uint8Array.fromBase64(host.utf8(String(input)));
  };
  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(input = "") { return bytesOf(String(input)); }
  }
  class TextDecoder {
    get encoding() { return "utf-8"; }
    decode(input = new Uint8Array(0)) { return host.text(bytesOf(input).toBase64()); }
  }
  const base64 = {
    encode(input) { return bytesOf(input).toBase64(); },
    decode(input) { return host.text(Uint8Array.fromBase64(String(input)).toBase64()); },
    bytes(input) { return Uint8Array.fromBase64(String(input)); },
  };
  function sha256(input) {
    return host.sha256(bytesOf(input).toBase64());
  }
  function audit(record) {
    const text = JSON.stringify(record);
    if (text === undefined) throw new TypeError("an audit record must be a value that JSON can hold");
    host.audit(text);
  }
  // The state of hooks; the host answers at once.
  function ask(scope, op, key, more) {
    const reply = JSON.parse(host.ask(JSON.stringify({ ...more, op, scope, key: String(key) })));
    if (reply.error !== undefined) throw new Error("state." + scope + "." + op + ": " + reply.error);
    return reply.value;
  }
  const state = {};
  for (const scope of ["client", "upstream", "global"]) {
    state[scope] = Object.freeze({
      get(key) { return ask(scope, "get", key, {}); },
      set(key, value, options = {}) { return ask(scope, "set", key, { value, ttl: options.ttl, if: options.if }); },
      incr(key, by = 1, options = {}) { return ask(scope, "incr", key, { by, ttl: options.ttl }); },
    });
  }
  function redact(text, replacement = "[redacted]", personal = false) {
    return host.redact(String(text), String(replacement), String(personal === true));
  }
  function namesSecret(name) {
    return host.namesSecret(String(name));
  }
  function mapStrings(value, change) {
    if (typeof value === "string") return change(value);
    if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
    if (value === null || typeof value !== "object") return value;
    const copy = {};
    for (const key of Object.keys(value)) put(copy, key, mapStrings(value[key], change));
    return copy;
  }
  // put makes a property of any name, "__proto__" too.
  function put(object, key, value) {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  }
  function structuredClone(value) {
    return clone(value, new Map());
  }
  function clone(value, done) {
    if (typeof value === "function" || typeof value === "symbol") {
      throw new TypeError("structuredClone: a " + typeof value + " cannot be cloned");
    }
    if (value === null || typeof value !== "object") return value;
    if (done.has(value)) return done.get(value);
    const keep = (copy) => { done.set(value, copy); return copy; };
    if (value instanceof RealDate) return keep(new RealDate(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = clone(value.buffer, done);
      return keep(value instanceof DataView
        ? new DataView(buffer, value.byteOffset, value.byteLength)
        : new value.constructor(buffer, value.byteOffset, value.length));
    }
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [k, v] of value) copy.set(clone(k, done), clone(v, done));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const v of value) copy.add(clone(v, done));
      return copy;
    }
    if (Error.isError(value)) {
      const copy = keep(new Error(value.message));
      put(copy, "name", value.name);
      put(copy, "stack", value.stack);
      return copy;
    }
    const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) put(copy, key, clone(value[key], done));
    return copy;
  }

  const api = {
    console, sleep, structuredClone, base64, sha256, audit, state, redact, namesSecret, mapStrings, TextEncoder, TextDecoder,
    atob(text) {
      const bytes = Uint8Array.fromBase64(String(text));
      let out = "";
      for (const byte of bytes) out += String.fromCharCode(byte);
      return out;
    },
    btoa(text) {
      const units = String(text);
      const bytes = new Uint8Array(units.length);
      for (let i = 0; i < units.length; i++) {
        const unit = units.charCodeAt(i);
        if (unit > 255) throw new RangeError("btoa: only characters up to U+00FF; use base64.encode for text");
        bytes[i] = unit;
      }
      return bytes.toBase64();
    },
    queueMicrotask(task) {
      Promise.resolve().then(task);
    },
  };
  for (const name of Object.keys(api)) globalThis[name] = api[name];

  // Frozen prototypes would forbid to set a property of the same name on one's
  // own object (const e = {}; e.toString = ...). For the names that scripts do
  // set, the frozen property becomes a pair of accessors that allow it.
  function allowOverride(proto, names) {
    for (const name of names) {
      const found = Object.getOwnPropertyDescriptor(proto, name);
      if (!found || !("value" in found)) continue;
      const value = found.value;
      Object.defineProperty(proto, name, {
        get() { return value; },
        set(next) {
          if (this === proto) throw new TypeError("'" + name + "' is frozen");
          if (this === null || this === undefined) return;
          Object.defineProperty(this, name, { value: next, writable: true, enumerable: true, configurable: true });
        },
        enumerable: false,
        configurable: false,
      });
    }
  }
  allowOverride(Object.prototype, [
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
  ]);
  allowOverride(Function.prototype, ["name", "toString"]);
  allowOverride(Error.prototype, ["constructor", "message", "name", "toString"]);
  for (const kind of [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError]) {
    delete kind.prototype.message; // it is that of Error
    allowOverride(kind.prototype, ["constructor", "name"]);
  }

  const freeze = Object.freeze;
  const iterator = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
  const asyncIterator = Object.getPrototypeOf(
    Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype));
  for (const proto of [
    iterator, asyncIterator, Object.getPrototypeOf(Uint8Array), Object.getPrototypeOf(Uint8Array.prototype),
    ...functionKinds.map((sample) => Object.getPrototypeOf(sample)),
    Object.getPrototypeOf(function* () {}).prototype, Object.getPrototypeOf(async function* () {}).prototype,
    ...["", [], new Map(), new Set()].map((sample) => Object.getPrototypeOf(sample[Symbol.iterator]())),
    Object.getPrototypeOf("".matchAll(/x/g)),
  ]) freeze(proto);
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    const value = globalThis[name];
    if (value === null || (typeof value !== "object" && typeof value !== "function") || value === globalThis) continue;
    freeze(value);
    if (value.prototype) freeze(value.prototype);
  }
  freeze(RealDate);
  for (const level of Object.keys(console)) freeze(console[level]);
  freeze(globalThis);

  // What a thrown value tells, whatever it does to those who ask.
  function describe(error) {
    const told = { name: "", message: "", stack: "", file: "", line: 0, column: 0 };
    const ask = (key, read) => {
      try {
        told[key] = read();
      } catch (ignored) {
        // A getter that throws tells nothing.
      }
    };
    if (Error.isError(error)) {
      ask("name", () => String(error.name));
      ask("message", () => String(error.message));
      ask("stack", () => (typeof error.stack === "string" ? error.stack : ""));
      if (told.name === "SyntaxError") {
        ask("file", () => String(error.fileName ?? ""));
        ask("line", () => Number(error.lineNumber) | 0);
        ask("column", () => Number(error.columnNumber) | 0);
      }
    } else {
      ask("message", () => inspect(error, 0, []));
    }
    return told;
  }
  function fail(stage, error) {
    const told = describe(error);
    host.report("failed", stage, told.name, told.message, told.stack, told.file, told.line, told.column);
  }

  function functionOf(space) {
    if (typeof space.default === "function") return space.default;
    throw new TypeError("the script exports no default function");
  }

  async function run(name, limit, argTexts) {
    let stage = "load";
    try {
      const space = await import(name);
      stage = "find";
      const target = functionOf(space);
      stage = "arguments";
      const args = argTexts.map((text) => JSON.parse(text));
      stage = "call";
      const value = await Reflect.apply(target, undefined, args);
      stage = "result";
      const kind = typeof value;
      if (kind === "function" || kind === "symbol") {
        throw new TypeError("a " + kind + " cannot be given as a result");
      }
      const changed = (given, text) => {
        const left = JSON.stringify(given);
        return left === text ? undefined : left;
      };
      const parts = [
        JSON.stringify(value),
        ...args.map((arg, i) => changed(arg, argTexts[i])),
      ];
      let size = 0;
      for (const part of parts) if (part !== undefined) size += part.length;
      if (size > limit) host.report("over", size);
      else host.report("done", ...parts);
    } catch (error) {
      fail(stage, error);
    }
  }

  return {
    // start begins a call; it ends by host.report.
    start(name, limit, fixed, nowMs, seedHigh, seedLow, ...argTexts) {
      if (fixed) {
        clock = nowMs;
        dice = seeded(seedHigh, seedLow);
      }
      run(name, limit, argTexts);
    },
    // tick wakes who has slept long enough. It gives the milliseconds until the
    // next one is due, or -1 if nobody sleeps.
    tick() {
      const time = realNow();
      let woken = false;
      while (timers.length && timers[0].due <= time) {
        timers.shift().resolve();
        woken = true;
      }
      if (woken) return 0;
      return timers.length ? Math.max(1, timers[0].due - time) : -1;
    },
  };
})()
