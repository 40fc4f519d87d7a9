import { beforeEach, expect, test, vi } from "vitest";
import { receiveStream, type Liveness } from "./stream";

// The parts of a browser that tabs share: connections, the lock, the channel.
let open: FakeSource[];
let channels: Set<FakeChannel>;
let queue: { run: () => Promise<void> }[];
let isHeld: boolean;

class FakeSource extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 1;
  onerror: (() => void) | null = null;
  constructor() {
    super();
    open.push(this);
  }
  send(type: string, data = "{}") {
    this.dispatchEvent(Object.assign(new Event(type), { data }));
  }
  close() {
    open.splice(open.indexOf(this), 1);
  }
}

class FakeChannel {
  onmessage: ((e: { data: unknown }) => void) | null = null;
  constructor() {
    channels.add(this);
  }
  postMessage(data: unknown) {
    for (const c of [...channels]) if (c !== this) c.onmessage?.({ data });
  }
  close() {
    channels.delete(this);
  }
}

async function grant() {
  if (isHeld) return;
  const next = queue.shift();
  if (next === undefined) return;
  isHeld = true;
  await next.run();
  isHeld = false;
  void grant();
}

const locks = {
  request: (_: string, { signal }: { signal: AbortSignal }, run: () => Promise<void>) => new Promise<void>((done, failed) => {
    const wait = { run: () => run().then(done) };
    queue.push(wait);
    signal.addEventListener("abort", () => {
      if (!queue.includes(wait)) return;
      queue.splice(queue.indexOf(wait), 1);
      failed(new Error("aborted"));
    });
    void grant();
  }),
};

/** A tab with its own document. */
class Tab {
  readonly seen: string[] = [];
  state: Liveness = "connecting";
  readonly document = Object.assign(new EventTarget(), { visibilityState: "visible" });
  readonly end: () => void;
  constructor() {
    vi.stubGlobal("document", this.document);
    this.end = receiveStream({ onEvent: (e) => this.seen.push(e.type), onState: (s) => (this.state = s) });
  }
  async show(visibilityState: "visible" | "hidden") {
    vi.stubGlobal("document", this.document);
    this.document.visibilityState = visibilityState;
    this.document.dispatchEvent(new Event("visibilitychange"));
    await settle();
  }
}

vi.mock("eventsource", () => ({ get EventSource() { return FakeSource; } }));

const settle = () => new Promise((done) => setImmediate(done));

beforeEach(() => {
  open = [];
  channels = new Set();
  queue = [];
  isHeld = false;
  vi.stubGlobal("BroadcastChannel", FakeChannel);
  vi.stubGlobal("navigator", { locks });
});

test("seven tabs share one connection, and each receives every event", async () => {
  const tabs = Array.from({ length: 7 }, () => new Tab());
  await settle();
  expect(open.length).toBe(1);
  open[0]?.send("connected");
  open[0]?.send("change");
  for (const tab of tabs) expect([tab.state, ...tab.seen]).toEqual(["live", "connected", "change"]);
  const late = new Tab();
  await settle();
  expect([open.length, late.state]).toEqual([1, "live"]);
});

test("a hidden tab releases the connection to a visible one, and all tabs read again", async () => {
  const [first, second] = [new Tab(), new Tab()];
  await settle();
  open[0]?.send("connected");
  await first.show("hidden");
  expect(open.length).toBe(1);
  open[0]?.send("connected");
  expect([first.seen, second.seen]).toEqual([["connected", "connected"], ["connected", "connected"]]);
  await second.show("hidden");
  expect(open.length).toBe(0);
  await first.show("visible");
  expect(open.length).toBe(1);
});

test("a closed tab leaves the connection to another", async () => {
  const [first, second] = [new Tab(), new Tab()];
  await settle();
  first.end();
  await settle();
  expect(open.length).toBe(1);
  open[0]?.send("connected");
  expect([first.seen, second.seen]).toEqual([[], ["connected"]]);
});

test("a connection that the server ended is lost in every tab", async () => {
  const tabs = [new Tab(), new Tab()];
  await settle();
  if (open[0] !== undefined) open[0].readyState = FakeSource.CLOSED;
  open[0]?.onerror?.();
  expect(tabs.map((t) => t.state)).toEqual(["lost", "lost"]);
});

test("without locks each visible tab has its own connection, and events come once", async () => {
  vi.stubGlobal("navigator", {});
  const tabs = [new Tab(), new Tab()];
  await settle();
  expect(open.length).toBe(2);
  open[0]?.send("change");
  expect(tabs.map((t) => t.seen)).toEqual([["change"], []]);
  await tabs[0]?.show("hidden");
  expect(open.length).toBe(1);
});
