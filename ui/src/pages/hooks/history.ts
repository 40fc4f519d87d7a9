/** What can be undone and done again. */
export interface History<T> {
  past: T[];
  now: T;
  future: T[];
  /** What the last edit was of: edits of the same are one, such as letters of a text. */
  of?: string | undefined;
}

/** How many steps back are kept. */
const most = 200;

export function began<T>(now: T): History<T> {
  return { past: [], now, future: [] };
}

/** Makes an edit; one of the same thing as the last joins it. */
export function edited<T>(h: History<T>, next: T, of?: string): History<T> {
  if (next === h.now) return h;
  const joins = of !== undefined && of === h.of && h.past.length > 0;
  return { past: joins ? h.past : [...h.past.slice(-most + 1), h.now], now: next, future: [], of };
}

export function undone<T>(h: History<T>): History<T> {
  const last = h.past[h.past.length - 1];
  return last === undefined ? h : { past: h.past.slice(0, -1), now: last, future: [h.now, ...h.future] };
}

export function redone<T>(h: History<T>): History<T> {
  const [next, ...rest] = h.future;
  return next === undefined ? h : { past: [...h.past, h.now], now: next, future: rest };
}
