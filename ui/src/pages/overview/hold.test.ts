import { expect, test } from "vitest";
import { countMore, oldestFirst, refill, type Held, type Waits } from "./hold";

const run = (n: number, seq = 3): Waits => ({ runId: `r${n}`, seq, updatedAt: `2026-01-01T00:00:${String(n).padStart(2, "0")}.000Z` });
const runs = (...ns: number[]) => ns.map((n) => run(n));
const ids = (held: Held<Waits>) => [held.forms.map((r) => r.runId), held.rest.map((r) => r.runId)];
const empty: Held<Waits> = { forms: [], rest: [] };
const none = new Map<string, number>();

test("the run that has waited longest comes first, and five have forms", () => {
  expect(ids(refill(empty, none, runs(7, 6, 5, 4, 3, 2, 1)))).toEqual([["r1", "r2", "r3", "r4", "r5"], ["r6", "r7"]]);
  expect(oldestFirst([{ ...run(1), runId: "b" }, { ...run(1), runId: "a" }]).map((r) => r.runId)).toEqual(["a", "b"]);
});

test("newcomers are counted, and follow the forms that are shown, even if those changed since", () => {
  const held = refill(empty, none, runs(2, 1));
  const waiting = [...runs(2, 3, 4), { ...run(1, 9), updatedAt: "2026-01-01T00:01:00.000Z" }]; // an attempt was refused at r1
  expect(countMore(held, none, waiting)).toBe(2);
  expect(ids(refill(held, none, waiting))).toEqual([["r1", "r2", "r3", "r4"], []]);
});

test("an answered run leaves with the next update, and comes back with its next gate", () => {
  const held = refill(empty, none, runs(1, 2, 3, 4, 5, 6));
  const settled = new Map([["r1", 5]]);
  expect(countMore(held, settled, runs(1, 2, 3, 4, 5, 6))).toBe(0); // the list is older than the answer
  expect(ids(refill(held, settled, runs(2, 3, 4, 5, 6)))).toEqual([["r2", "r3", "r4", "r5", "r6"], []]);
  const again = [...runs(2, 3, 4, 5, 6), { ...run(9, 8), runId: "r1" }];
  expect(countMore(held, settled, again)).toBe(1);
  expect(ids(refill(held, settled, again))).toEqual([["r2", "r3", "r4", "r5", "r6"], ["r1"]]);
});
