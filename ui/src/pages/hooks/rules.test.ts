import { expect, test } from "vitest";
import { addNode, beginning, connect, freshNode, insertNode, move, rename, setHook, without, type HookDocument } from "./document";
import { began, edited, redone, undone } from "./history";
import { arranged, isPlaced, nodeSize } from "./layout";
import { whyNoNode, whyNot, whyNotInto } from "./rules";

const origin = { x: 0, y: 0 };
const withHook = addNode(beginning, freshNode(beginning, "hook", origin));
const aside = setHook(withHook, "hook", { blocking: false });
const free = without(beginning, [], [0, 1]);
const choice = addNode(free, freshNode(free, "condition", origin));

// What the editor forbids, and why. The engine forbids the same.
test.each<[string, HookDocument, string, string, string | undefined, RegExp | undefined]>([
  ["a hook behind the call", aside, "call", "hook", undefined, undefined],
  ["a second way on", withHook, "call", "hook", undefined, /MCP call has an outgoing edge already/],
  ["an end leads on", withHook, "end", "hook", undefined, /no outgoing edges/],
  ["into the start", withHook, "hook", "start", undefined, /no incoming edges/],
  ["into a node that has its way in", withHook, "hook", "end", undefined, /has an incoming edge already/],
  ["a node to itself", withHook, "hook", "hook", undefined, /itself/],
  ["a circle", connect(free, "call", "end"), "end", "call", undefined, /no outgoing edges/],
  ["a circle of hooks", connect(withHook, "hook", "start"), "start", "hook", undefined, /loop/],
  ["out of a fire-and-forget hook", aside, "hook", "end", undefined, /fire-and-forget/],
  ["the same way twice", beginning, "start", "call", undefined, /already/],
  ["a way that is free", free, "start", "call", undefined, undefined],
  ["a condition without a branch", choice, "condition", "call", undefined, /true or for false/],
  ["a condition with one", choice, "condition", "call", "true", undefined],
  ["both branches", connect(choice, "condition", "call", "true"), "condition", "end", "false", undefined],
  ["one branch twice", connect(choice, "condition", "call", "true"), "condition", "end", "true", /Condition has an outgoing edge for true already/],
  ["no such node", free, "start", "none", undefined, /no such/],
])("%s", (_, doc, source, target, branch, says) => {
  const why = whyNot(doc, { source, target, branch });
  if (says === undefined) expect(why).toBeUndefined();
  else expect(why).toMatch(says);
});

test("a call is on a way once", () => {
  const two = addNode(without(beginning, [], [1]), freshNode(beginning, "mcp-call", origin));
  expect(whyNot(two, { source: "call", target: "call-2" })).toMatch(/sent twice/);
  expect(whyNotInto(beginning, "mcp-call", 0)).toMatch(/sent twice/);
  expect(whyNotInto(beginning, "hook", 0)).toBeUndefined();
  expect(whyNoNode(beginning, "start")).toBe("A graph has one start.");
  expect(whyNoNode(free, "end")).toBeUndefined();
});

test("a node is put into a way, and taken out again with its ways", () => {
  const inserted = insertNode(beginning, freshNode(beginning, "hook", origin), 0);
  expect(inserted.edges.map((e) => `${e.source}-${e.target}`)).toEqual(["start-hook", "hook-call", "call-end"]);
  expect(without(inserted, ["hook"], []).edges.map((e) => `${e.source}-${e.target}`)).toEqual(["call-end"]);
  expect(rename(inserted, "hook", "look").edges.map((e) => `${e.source}-${e.target}`)).toEqual(["start-look", "look-call", "call-end"]);
});

test("members that the editor does not know stay", () => {
  const odd: HookDocument = { ...beginning, createdAt: 7, nodes: beginning.nodes.map((n) => ({ ...n, selected: true })) };
  const after = move(setHook(odd, "call", {}), new Map([["start", { x: 1.6, y: 2 }]]));
  expect(after["createdAt"]).toBe(7);
  expect(after.nodes[0]).toMatchObject({ selected: true, position: { x: 2, y: 2 } });
});

test("the layout puts no node on another", () => {
  let doc = beginning;
  for (let i = 0; i < 60; i++) doc = insertNode(doc, { ...freshNode(doc, "hook", origin), ...(i % 3 === 0 ? { data: { hook: { blocking: false, script: "1" } } } : {}) }, i % 2);
  expect(isPlaced(doc)).toBe(false);
  const placed = arranged(doc);
  expect(isPlaced(placed)).toBe(true);
  for (const a of placed.nodes) for (const b of placed.nodes) {
    if (a.id >= b.id || a.position === undefined || b.position === undefined) continue;
    const apart = Math.abs(a.position.x - b.position.x) >= nodeSize.width || Math.abs(a.position.y - b.position.y) >= nodeSize.height;
    expect(apart, `${a.id} lies on ${b.id}`).toBe(true);
  }
});

test("true is left of false, the request goes straight down, and a circle ends", () => {
  const forked = connect(connect(choice, "condition", "end", "false"), "condition", "call", "true");
  const withAside = connect(addNode(forked, setHook(addNode(forked, freshNode(forked, "hook", origin)), "hook", { blocking: false }).nodes.at(-1) ?? freshNode(forked, "hook", origin)), "call", "hook");
  const at = Object.fromEntries(arranged(connect(addNode(withAside, { id: "out", type: "end" }), "call", "out")).nodes.map((n) => [n.id, n.position?.x ?? NaN]));
  expect(at["call"]).toBeLessThan(at["end"] ?? 0);
  expect(at["out"]).toBe(at["call"]);
  expect(at["hook"]).toBeGreaterThan(at["call"] ?? 0);
  expect(isPlaced(arranged(connect(beginning, "end", "start")))).toBe(true);
});

test("edits are undone and done again, and letters of one text are one edit", () => {
  let h = began("");
  h = edited(edited(edited(h, "a", "text"), "ab", "text"), "ab!");
  expect(h.past).toEqual(["", "ab"]);
  h = undone(undone(h));
  expect([h.now, undone(h).now, redone(h).now, redone(redone(h)).now]).toEqual(["", "", "ab", "ab!"]);
  expect(edited(undone(redone(h)), "other").future).toEqual([]);
});
