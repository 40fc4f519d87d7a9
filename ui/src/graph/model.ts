/** What a node of any definition stands for. */
export type NodeKind = "step" | "gate" | "decision" | "loop" | "phase" | "end";

/** Where a run stands with a node. */
export type NodeState = "done" | "skipped" | "refused" | "here" | "ahead";

/** A node of a definition's graph. One that has a parent is drawn in its frame. */
export interface GraphNode {
  id: string;
  kind: NodeKind;
  title: string;
  /** What is said under the title. */
  note?: string;
  parent?: string;
}

/** A way from a node to another, with its condition in words. */
export interface GraphEdge {
  from: string;
  to: string;
  label?: string;
}

/** A definition of any dialect as nodes and ways. */
export interface GraphModel {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

type Json = Record<string, unknown>;

/** Reads a definition; undefined where it is of no dialect that is known. */
export function graphOf(definition: unknown): GraphModel | undefined {
  if (!isObject(definition)) return undefined;
  if (Array.isArray(definition["phases"])) return phasesGraph(definition["phases"].filter(isObject));
  if (Array.isArray(definition["steps"])) return stepsGraph(definition["steps"].filter(isObject));
  return undefined;
}

function stepsGraph(steps: Json[]): GraphModel {
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
      model.nodes.push(stepNode(step));
      chain(id, when);
      continue;
    }
    model.nodes.push({ id, kind: "loop", title: text(step["title"]) || id, ...noteOf(loopWords(step["loop"])) });
    chain(id, when);
    const named = byId.get(text(step["body"]));
    const body = Array.isArray(step["body"]) ? step["body"].filter(isObject) : named === undefined ? [] : [named];
    addBody(model, body, id);
  }
  model.nodes.push({ id: "(end)", kind: "end", title: "End" });
  chain("(end)");
  return model;
}

function addBody(model: GraphModel, body: Json[], parent: string) {
  let before: string | undefined;
  for (const step of body) {
    const node = { ...stepNode(step), parent };
    model.nodes.push(node);
    if (before !== undefined) model.edges.push({ from: before, to: node.id });
    before = node.id;
  }
}

function stepNode(step: Json): GraphNode {
  const gated = step["requireConfirmation"] !== undefined && step["requireConfirmation"] !== false;
  const id = text(step["id"]);
  return {
    id, kind: gated || step["approval"] === "human" ? "gate" : "step", title: text(step["title"]) || text(step["name"]) || id,
    ...noteOf(gated ? "waits for a confirmation" : step["required"] === false ? "optional" : ""),
  };
}

function phasesGraph(phases: Json[]): GraphModel {
  const model: GraphModel = { nodes: [], edges: [] };
  const ends = phases.some((p) => list(p["decisions"]).length === 0 && list(p["transitions"]).length === 0);
  for (const phase of phases) {
    const id = text(phase["id"]);
    model.nodes.push({ id, kind: "phase", title: text(phase["name"]) || id, ...noteOf(phase["required"] === false ? "optional" : "") });
    addPhaseBody(model, phase, id);
    const ways = [...list(phase["decisions"]).flatMap((d) => list(d["branches"])), ...list(phase["transitions"])];
    for (const way of ways) addWay(model, id, text(way["transitionTo"]) || text(way["to"]), wayWords(way));
    for (const option of list(phase["checkpoints"]).flatMap((c) => list(c["options"]))) {
      if (isObject(option["effect"])) addWay(model, id, text(option["effect"]["transitionTo"]), text(option["label"]));
    }
    if (ways.length === 0) addWay(model, id, "(end)", undefined);
  }
  if (ends) model.nodes.push({ id: "(end)", kind: "end", title: "End" });
  return model;
}

function addPhaseBody(model: GraphModel, phase: Json, parent: string) {
  const parts: GraphNode[] = list(phase["steps"]).map(stepNode);
  for (const loop of list(phase["loops"])) {
    parts.push({ id: text(loop["id"]), kind: "loop", title: text(loop["name"]), note: `${list(loop["steps"]).length} steps, ${text(loop["type"])}` });
  }
  for (const c of list(phase["checkpoints"])) parts.push({ id: text(c["id"]), kind: "gate", title: text(c["name"]) || text(c["id"]) });
  for (const d of list(phase["decisions"])) parts.push({ id: text(d["id"]), kind: "decision", title: text(d["name"]) || text(d["id"]) });
  parts.forEach((node, i) => {
    model.nodes.push({ ...node, id: inPhase(parent, node.id), parent });
    const before = parts[i - 1];
    if (before !== undefined) model.edges.push({ from: inPhase(parent, before.id), to: inPhase(parent, node.id) });
  });
}

/** The id of a part of a phase: two phases may name their parts alike. */
export function inPhase(phase: string, id: string): string {
  return `${phase}/${id}`;
}

function addWay(model: GraphModel, from: string, to: string, label: string | undefined) {
  if (to === "") return;
  const there = model.edges.find((e) => e.from === from && e.to === to);
  if (there === undefined) model.edges.push({ from, to, ...(label === undefined || label === "" ? {} : { label }) });
  else if (label !== undefined && label !== "") there.label = there.label === undefined ? label : `${there.label}, or ${label}`;
}

function wayWords(way: Json): string {
  const condition = conditionWords(way["condition"]);
  return condition ?? (way["isDefault"] === true ? "otherwise" : text(way["label"]));
}

function loopWords(loop: unknown): string {
  if (!isObject(loop)) return "";
  const type = text(loop["type"]);
  if (type === "forEach") return `for each of ${text(loop["items"])}`;
  if (type === "for") return `${String(loop["count"])} times`;
  return `${type} ${conditionWords(loop["condition"]) ?? ""}`.trim();
}

/** A condition of either dialect in words; undefined where there is none. */
export function conditionWords(condition: unknown): string | undefined {
  if (!isObject(condition)) return undefined;
  for (const [name, word] of [["and", "and"], ["or", "or"]] as const) {
    const members = condition["type"] === name ? condition["conditions"] : condition[name];
    if (Array.isArray(members)) return members.map((m) => conditionWords(m) ?? "?").join(` ${word} `);
  }
  if (condition["type"] === "not" || isObject(condition["not"])) return `not (${conditionWords(condition["condition"] ?? condition["not"]) ?? "?"})`;
  const variable = text(condition["variable"]) || text(condition["var"]);
  if (condition["operator"] !== undefined) {
    const operator = text(condition["operator"]);
    if (operator === "exists") return `${variable} exists`;
    if (operator === "notExists") return `${variable} does not exist`;
    return `${variable} ${operator === "==" ? "is" : operator === "!=" ? "is not" : operator} ${JSON.stringify(condition["value"])}`;
  }
  const [operator, value] = Object.entries(condition).find(([k]) => k !== "var") ?? ["", undefined];
  return `${variable} ${operator === "equals" ? "is" : operator.replaceAll("_", " ")} ${JSON.stringify(value)}`;
}

function noteOf(note: string): { note?: string } {
  return note === "" ? {} : { note };
}

function list(v: unknown): Json[] {
  return Array.isArray(v) ? v.filter(isObject) : [];
}

function isObject(v: unknown): v is Json {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

function text(v: unknown): string {
  return typeof v === "string" ? v : "";
}
