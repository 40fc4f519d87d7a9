import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { place, type Drawing, type Placed } from "./layout";
import { graphOf, type GraphModel } from "./model";

interface Box {
  id: string;
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Where nodes stand on the whole drawing. */
function boxes(drawing: Drawing): Map<string, Box & { parent: string | undefined }> {
  const byId = new Map(drawing.nodes.map((p) => [p.node.id, p]));
  const origin = (p: Placed): { x: number; y: number } => {
    const parent = p.node.parent === undefined ? undefined : byId.get(p.node.parent);
    if (parent === undefined) return { x: p.x, y: p.y };
    const at = origin(parent);
    return { x: at.x + p.x, y: at.y + p.y };
  };
  return new Map(drawing.nodes.map((p) => {
    const { x, y } = origin(p);
    return [p.node.id, { id: p.node.id, parent: p.node.parent, left: x, top: y, right: x + p.width, bottom: y + p.height }];
  }));
}

function overlap(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** What is drawn wrong: nodes over each other, out of their frames, or under a label. */
function faults(model: GraphModel): string[] {
  const drawing = place(model);
  const all = [...boxes(drawing).values()];
  const wrong: string[] = [];
  for (const [i, a] of all.entries()) {
    for (const b of all.slice(i + 1)) if (a.parent === b.parent && overlap(a, b)) wrong.push(`${a.id} and ${b.id} overlap`);
    const frame = all.find((f) => f.id === a.parent);
    if (frame !== undefined && (a.left < frame.left || a.right > frame.right || a.top < frame.top + 24 || a.bottom > frame.bottom)) wrong.push(`${a.id} sticks out of ${frame.id}`);
  }
  const leaves = all.filter((a) => !all.some((b) => b.parent === a.id));
  for (const { edge, label } of drawing.edges) {
    if (label === undefined) continue;
    const box = { id: "", left: label.x - label.width / 2, right: label.x + label.width / 2, top: label.y - label.height / 2, bottom: label.y + label.height / 2 };
    const hit = leaves.find((n) => overlap(n, box));
    if (hit !== undefined) wrong.push(`the label of ${edge.from} to ${edge.to} lies on ${hit.id}`);
  }
  return wrong;
}

const repository = resolve(import.meta.dirname, "../../..");
const corpus = resolve(repository, "../shared/corpus");

function definitions(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((f) => f.endsWith(".json")).map((f) => join(dir, f));
}

test.each([...definitions(join(corpus, "steps/workflows")), ...definitions(join(corpus, "phases"))])("nothing overlaps in %s", (file) => {
  const text = readFileSync(file, "utf8");
  const model = text.trim() === "" ? undefined : graphOf(JSON.parse(text));
  if (model === undefined) return; // an activity or a skill, or nothing at all
  expect(faults(model)).toEqual([]);
});

test("nothing overlaps in a graph of 200 steps with ways back and long labels", () => {
  const phases = Array.from({ length: 40 }, (_, i) => ({
    id: `p${i}`, name: `Phase ${i} with a name that is longer than a node is wide`,
    steps: [{ id: "a", name: "A" }, { id: "b", name: "B" }],
    loops: [{ id: "l", name: "Loop", type: "forEach", over: "parts", steps: [{ id: "c", name: "C" }] }],
    checkpoints: [{ id: "g", name: "Gate", options: [{ id: "x", label: "Back", effect: { transitionTo: `p${Math.max(0, i - 3)}` } }] }],
    transitions: [
      { to: `p${Math.min(39, i + 1)}`, condition: { type: "simple", variable: "a_rather_long_variable_name", operator: "==", value: "a value that is long as well" } },
      { to: `p${Math.min(39, i + 5)}`, isDefault: true },
    ],
  }));
  const model = graphOf({ phases });
  expect(model?.nodes.length).toBeGreaterThan(200);
  expect(faults(model ?? { nodes: [], edges: [] })).toEqual([]);
});
