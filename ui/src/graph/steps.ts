import { conditionWords, loopWords } from "./conditions";
import { isObject, list, noteOf, text, type Json } from "./json";
import { endID, type GraphModel, type GraphNode } from "./model";

/** The graph of a step workflow: one way down, loops as frames around their bodies. */
export function stepsGraph(steps: Json[]): GraphModel {
  const model: GraphModel = { nodes: [], edges: [] };
  let last: string | undefined;
  const chain = (id: string, label?: string) => {
    if (last !== undefined) model.edges.push({ from: last, to: id, ...(label === undefined ? {} : { label }) });
    last = id;
  };
  const bodies = new Set(steps.map((s) => s["body"]).filter((b): b is string => typeof b === "string"));
  const byId = new Map(steps.map((s) => [text(s["id"]), s]));
  for (const step of steps) {
    const id = text(step["id"]);
    if (bodies.has(id)) continue;
    const when = conditionWords(step["runCondition"]);
    if (text(step["type"]) !== "loop") {
      model.nodes.push(stepNode(step, undefined));
      chain(id, when);
      continue;
    }
    model.nodes.push({ id, ref: id, kind: "loop", title: text(step["title"]) || id, ...noteOf(loopWords(step["loop"])) });
    chain(id, when);
    const named = byId.get(text(step["body"]));
    addBody(model, Array.isArray(step["body"]) ? list(step["body"]) : named === undefined ? [] : [named], id);
  }
  model.nodes.push({ id: endID, kind: "end", title: "End" });
  chain(endID);
  return model;
}

function addBody(model: GraphModel, body: Json[], parent: string) {
  let before: string | undefined;
  for (const step of body) {
    const when = conditionWords(step["runCondition"]);
    const node = { ...stepNode(step, before === undefined ? when : undefined), parent };
    model.nodes.push(node);
    if (before !== undefined) model.edges.push({ from: before, to: node.id, ...(when === undefined ? {} : { label: when }) });
    before = node.id;
  }
}

/** A step as a node. A condition that no way leads with stands in its note. */
export function stepNode(step: Json, when: string | undefined): GraphNode {
  const confirm = step["requireConfirmation"];
  const person = step["approval"] === "human";
  const gated = person || (confirm !== undefined && confirm !== false);
  const id = text(step["id"]);
  const notes = [
    when === undefined ? "" : `if ${when}`,
    person ? "a person confirms it" : isObject(confirm) ? `confirmed if ${conditionWords(confirm) ?? "asked"}` : gated ? "is confirmed" : "",
    step["required"] === false ? "optional" : "",
  ];
  return {
    id, ref: id, kind: gated ? "gate" : "step", title: text(step["title"]) || text(step["name"]) || id,
    ...noteOf(notes.filter((n) => n !== "").join(" · ")),
  };
}
