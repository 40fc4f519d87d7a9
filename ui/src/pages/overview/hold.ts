/** What the order of waiting runs depends on. */
export interface Waits {
  runId: string;
  seq: number;
  updatedAt: string;
}

/** The gates that the page shows. They keep their places until the person updates the list. */
export interface Held<R extends Waits> {
  /** The runs with a form. */
  forms: R[];
  /** The runs in the table below the forms. */
  rest: R[];
}

/** How many gates have a form. */
const mostForms = 5;

/** Sorts the runs that have waited longest first. */
export function oldestFirst<R extends Waits>(runs: R[]): R[] {
  return [...runs].sort((a, b) => a.updatedAt.localeCompare(b.updatedAt) || a.runId.localeCompare(b.runId));
}

/** Returns the runs to show: forms that still wait keep their order, then the oldest follow. */
export function refill<R extends Waits>(held: Held<R>, settled: Map<string, number>, waiting: R[]): Held<R> {
  const now = new Set(waiting.map((r) => r.runId));
  const kept = held.forms.filter((r) => now.has(r.runId) && !isSettled(r, settled));
  const ids = new Set(kept.map((r) => r.runId));
  const all = [...kept, ...oldestFirst(waiting).filter((r) => !ids.has(r.runId) && !isSettled(r, settled))];
  return { forms: all.slice(0, mostForms), rest: all.slice(mostForms) };
}

/** Returns the number of waiting runs that the page does not show. */
export function countMore<R extends Waits>(held: Held<R>, settled: Map<string, number>, waiting: R[]): number {
  const shown = new Set([...held.forms, ...held.rest].filter((r) => !isSettled(r, settled)).map((r) => r.runId));
  return waiting.filter((r) => !isSettled(r, settled) && !shown.has(r.runId)).length;
}

/** Reports whether the gate at which a run was read is answered. The map has the last event of each run at that time. */
export function isSettled(r: Waits, settled: Map<string, number>): boolean {
  return r.seq < (settled.get(r.runId) ?? 0);
}
