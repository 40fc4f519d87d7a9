import { conditionWords, loopWords } from "./conditions";
import { isObject, list, noteOf, text, type Json } from "./json";
import { endID, inPhase, type GraphModel, type GraphNode } from "./model";
import { stepNode } from "./steps";

/** The graph of a phase workflow: a frame for each phase, and the ways between them. */
export function phasesGraph(phases: Json[]): GraphModel {
  const model: GraphModel = { nodes: [], edges: [] };
  for (const phase of phases) {
    const id = text(phase["id"]);
    model.nodes.push({ id, ref: id, kind: "phase", title: text(phase["name"]) || id, ...noteOf(phase["required"] === false ? "optional phase" : "") });
    addParts(model, phase, id);
    addWays(model, phase, id);
  }
  if (model.edges.some((e) => e.to === endID)) model.nodes.push({ id: endID, kind: "end", title: "End" });
  return model;
}

/** The parts of a phase follow each other in the order in which the engine takes them. */
function addParts(model: GraphModel, phase: Json, parent: string) {
  let before: string | undefined;
  const add = (node: GraphNode) => {
    model.nodes.push(node);
    if (before !== undefined) model.edges.push({ from: before, to: node.id });
    before = node.id;
  };
  const part = (kind: GraphNode["kind"], d: Json, note: string): GraphNode => {
    const ref = text(d["id"]);
    return { id: inPhase(parent, ref), ref, kind, title: text(d["name"]) || ref, parent, ...noteOf(note) };
  };
  for (const step of list(phase["steps"])) add({ ...part("step", step, ""), ...keep(stepNode(step, undefined)) });
  for (const loop of list(phase["loops"])) {
    const frame = part("loop", loop, loopWords(loop));
    add(frame);
    addLoopSteps(model, list(loop["steps"]), parent, frame.id);
  }
  for (const c of list(phase["checkpoints"])) add(part("gate", c, c["required"] === false ? "optional" : c["approval"] === "human" ? "a person answers" : ""));
  for (const d of list(phase["decisions"])) add(part("decision", d, ""));
}

function addLoopSteps(model: GraphModel, steps: Json[], phase: string, frame: string) {
  let before: string | undefined;
  for (const step of steps) {
    const node = { ...stepNode(step, undefined), id: inPhase(phase, text(step["id"])), parent: frame };
    model.nodes.push(node);
    if (before !== undefined) model.edges.push({ from: before, to: node.id });
    before = node.id;
  }
}

/** What a step's node says besides its place. */
function keep({ kind, title, note }: GraphNode): Pick<GraphNode, "kind" | "title" | "note"> {
  return { kind, title, ...noteOf(note ?? "") };
}

function addWays(model: GraphModel, phase: Json, id: string) {
  const ways = [...list(phase["decisions"]).flatMap((d) => list(d["branches"])), ...list(phase["transitions"])];
  for (const way of ways) addWay(model, id, text(way["transitionTo"]) || text(way["to"]), wayWords(way));
  for (const option of list(phase["checkpoints"]).flatMap((c) => list(c["options"]))) {
    if (isObject(option["effect"])) addWay(model, id, text(option["effect"]["transitionTo"]), text(option["label"]));
  }
  if (ways.length === 0) addWay(model, id, endID, "");
}

function addWay(model: GraphModel, from: string, to: string, label: string) {
  if (to === "") return;
  const there = model.edges.find((e) => e.from === from && e.to === to);
  if (there === undefined) model.edges.push({ from, to, ...(label === "" ? {} : { label }) });
  else if (label !== "") there.label = there.label === undefined ? label : `${there.label}, or ${label}`;
}

function wayWords(way: Json): string {
  return conditionWords(way["condition"]) ?? (way["isDefault"] === true ? "otherwise" : text(way["label"]));
}
