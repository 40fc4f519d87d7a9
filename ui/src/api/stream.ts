import { EventSource } from "eventsource";
import { fetchWithKey } from "./client";

/** Whether the stream of changes is connected. */
export type Liveness = "connecting" | "live" | "lost";

/** An event of the stream of changes. */
export interface StreamEvent {
  type: string;
  data: string;
}

interface Receiver {
  onEvent: (event: StreamEvent) => void;
  onState: (state: Liveness) => void;
}

type Message = { kind: "event"; event: StreamEvent } | { kind: "state"; state: Liveness } | { kind: "ask" };

const name = "guideway-events";
const types = ["connected", "reset", "change", "definitions", "requests"];

/**
 * Opens a stream of the server with the key of this origin, which the EventSource of a browser
 * cannot send. It reconnects after the last event.
 */
export function openStream(path: string): EventSource {
  return new EventSource(path, { fetch: fetchWithKey });
}

/**
 * Receives the stream of changes. All tabs of a browser share one connection, because a
 * browser opens only six to a server: the visible tab that holds the lock reads the stream
 * and passes it on. A hidden tab releases the lock. Every new connection begins with the
 * event connected, which all tabs receive, so that no tab misses a change between two
 * connections. Returns the function that ends it.
 */
export function receiveStream({ onEvent, onState }: Receiver): () => void {
  const channel = new BroadcastChannel(name);
  let source: EventSource | undefined;
  let state: Liveness = "connecting";

  const receive = (m: Message) => {
    if (m.kind === "event") onEvent(m.event);
    else if (m.kind === "state") onState(m.state);
    else if (source !== undefined) channel.postMessage({ kind: "state", state } satisfies Message);
  };
  const publish = (m: Message) => {
    receive(m);
    // Without locks every visible tab has its own connection.
    if (locks() !== undefined) channel.postMessage(m);
  };
  const change = (next: Liveness) => {
    state = next;
    publish({ kind: "state", state });
  };
  const open = (signal: AbortSignal) => {
    const opened = openStream("/api/events");
    source = opened;
    change("connecting");
    for (const type of types) {
      opened.addEventListener(type, (e: MessageEvent<string>) => {
        if (type === "connected") change("live");
        publish({ kind: "event", event: { type, data: e.data } });
      });
    }
    opened.onerror = () => change(opened.readyState === EventSource.CLOSED ? "lost" : "connecting");
    signal.addEventListener("abort", () => {
      opened.close();
      source = undefined;
    });
  };
  const join = () => {
    const turn = new AbortController();
    const { signal } = turn;
    const held = locks();
    if (held === undefined) {
      open(signal);
      return () => turn.abort();
    }
    channel.postMessage({ kind: "ask" } satisfies Message);
    held.request(name, { signal }, () => new Promise<void>((release) => {
      if (signal.aborted) return release();
      open(signal);
      signal.addEventListener("abort", () => release());
    })).catch(() => undefined); // the wait was aborted
    return () => turn.abort();
  };
  channel.onmessage = (e: MessageEvent<Message>) => receive(e.data);
  const end = whileVisible(join);
  return () => {
    end();
    channel.close();
  };
}

/**
 * Calls start whenever the tab becomes visible, and the function that start returned when it
 * becomes hidden. Returns the function that ends it.
 */
export function whileVisible(start: () => () => void): () => void {
  let stop: (() => void) | undefined;
  const update = () => {
    if (document.visibilityState === "hidden") {
      stop?.();
      stop = undefined;
    } else {
      stop ??= start();
    }
  };
  document.addEventListener("visibilitychange", update);
  update();
  return () => {
    document.removeEventListener("visibilitychange", update);
    stop?.();
  };
}

/** Returns the locks of the browser. Pages of another machine without TLS have none. */
function locks(): LockManager | undefined {
  return (navigator as { locks?: LockManager }).locks;
}
