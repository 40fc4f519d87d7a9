import { expect, test } from "vitest";
import { nameInWords, sectionsOf, shapeOf } from "./shapes";

test.each([
  [null, "nothing"], ["", "nothing"], [[], "nothing"], [{}, "nothing"],
  [1, "scalar"], [false, "scalar"], ["short", "scalar"], ["two\nlines", "text"], ["x".repeat(81), "text"],
  [["a", 1], "words"],
  [[{ a: 1 }, { a: 2 }], "table"], [[{ a: 1 }], "cards"], [[{ a: { b: 1 } }, { a: 1 }], "cards"],
  [[{ time: "2026-01-01T00:00:00Z", event: "x" }], "timeline"], [[{ time: "soon", event: "x" }, { time: "now", event: "y" }], "table"],
  [[{ a: 1 }, 2], "list"], [{ a: 1 }, "pairs"], [{ a: { b: 1 } }, "parts"],
])("%j is shown as %s", (value, shape) => expect(shapeOf(value)).toBe(shape));

test("sections come in the order that the document asks for, and all of them come", () => {
  const data = { b: 1, a: 2, c: 3, dashboard: {}, _meta: { order: ["c", "none"], collapsible: ["a"] } };
  expect(sectionsOf(data).map((s) => [s.name, s.collapsed])).toEqual([["c", false], ["b", false], ["a", true]]);
});

test("names are in words", () => expect(["ruledOut", "ruled_out", "HTTP", "a-b"].map(nameInWords)).toEqual(["Ruled out", "Ruled out", "HTTP", "A b"]));
