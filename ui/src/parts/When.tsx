import { useSyncExternalStore } from "react";

const units: [seconds: number, name: string][] = [[86_400, "d"], [3_600, "h"], [60, "min"]];

let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const l of listeners) l();
  }, 30_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** A time, relative to now; the exact one is its title. */
export function When({ at }: { at: string }) {
  const current = useSyncExternalStore(subscribe, () => now);
  const then = new Date(at);
  return <time dateTime={at} title={then.toLocaleString()}>{relative(current - then.getTime())}</time>;
}

export function relative(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  const unit = units.find(([size]) => seconds >= size);
  return unit === undefined ? "just now" : `${Math.floor(seconds / unit[0])} ${unit[1]} ago`;
}
