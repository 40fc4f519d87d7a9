import { isObject, list, text, type Json } from "../../graph/json";

/** What a node does. */
export type Kind = "start" | "hook" | "condition" | "mcp-call" | "end";

/** The way on from a condition. */
export type Branch = "true" | "false";

export interface Point {
  x: number;
  y: number;
}

/** A node of a hook graph as its document has it; members that are not named here stay as they are. */
export interface HookNode extends Json {
  id: string;
  type: Kind;
  position?: Point;
  data?: Json;
}

/** A way from a node to another. */
export interface HookEdge extends Json {
  source: string;
  target: string;
  sourceHandle?: string | null;
}

/** A hook graph as its document has it. It is never changed: an edit gives another one. */
export interface HookDocument extends Json {
  id: string;
  name: string;
  workflowType: string;
  nodes: HookNode[];
  edges: HookEdge[];
}

/** What a person reads of each kind. */
export const kindNames: Record<Kind, string> = { start: "Start", hook: "Hook", condition: "Condition", "mcp-call": "MCP call", end: "End" };

/** Reads a document that the server says is a graph; undefined where it is none. */
export function documentOf(value: unknown): HookDocument | undefined {
  if (!isObject(value)) return undefined;
  return { ...value, id: text(value["id"]), name: text(value["name"]), workflowType: text(value["workflowType"]), nodes: list(value["nodes"]) as HookNode[], edges: list(value["edges"]) as HookEdge[] };
}

/** The settings of a hook; empty where the node is none. */
export function hookOf(node: HookNode): Json {
  const hook = node.data?.["hook"];
  return isObject(hook) ? hook : {};
}

/** Whether nothing waits for a node: it is a fire-and-forget hook. */
export function isAside(node: HookNode): boolean {
  return node.type === "hook" && hookOf(node)["blocking"] === false;
}

/** What a person reads of a node. */
export function titleOf(node: HookNode): string {
  return text(node.data?.["label"]) || node.id;
}

/** The branch that an edge is of; undefined where it comes from no condition. */
export function branchOf(doc: HookDocument, edge: HookEdge): string | undefined {
  return nodeOf(doc, edge.source)?.type === "condition" ? (edge.sourceHandle ?? undefined) : undefined;
}

export function nodeOf(doc: HookDocument, id: string): HookNode | undefined {
  return doc.nodes.find((n) => n.id === id);
}

/** An id that no node has, made of a word. */
export function freshID(doc: HookDocument, word: string): string {
  if (nodeOf(doc, word) === undefined) return word;
  for (let n = 2; ; n++) if (nodeOf(doc, `${word}-${n}`) === undefined) return `${word}-${n}`;
}

const firstScript = "// context.request.params, context.response and context.variables are yours to change.\n";

/** A new node of a kind, with what it needs to be legal. */
export function freshNode(doc: HookDocument, kind: Kind, at: Point): HookNode {
  const id = freshID(doc, kind === "mcp-call" ? "call" : kind);
  const data: Json = { label: kindNames[kind] };
  if (kind === "hook") data["hook"] = { blocking: true, script: firstScript };
  if (kind === "condition") data["condition"] = { type: "simple", variable: "request.params.name", operator: "exists" };
  return { id, type: kind, position: rounded(at), data };
}

export function addNode(doc: HookDocument, node: HookNode): HookDocument {
  return { ...doc, nodes: [...doc.nodes, node] };
}

/** Puts a node into the middle of an edge. */
export function insertNode(doc: HookDocument, node: HookNode, edge: number): HookDocument {
  const was = doc.edges[edge];
  if (was === undefined) return addNode(doc, node);
  const next = addNode(doc, node);
  if (isAside(node)) return { ...next, edges: [...next.edges, { ...was, target: node.id }] };
  const on: HookEdge = { source: node.id, target: was.target, ...(node.type === "condition" ? { sourceHandle: "true" } : {}) };
  return { ...next, edges: next.edges.flatMap((e, i) => (i === edge ? [{ ...e, target: node.id }, on] : [e])) };
}

export function connect(doc: HookDocument, source: string, target: string, branch?: string): HookDocument {
  return { ...doc, edges: [...doc.edges, { source, target, ...(branch === undefined ? {} : { sourceHandle: branch }) }] };
}

/** Takes nodes out with their edges, and edges by their places. */
export function without(doc: HookDocument, nodes: string[], edges: number[]): HookDocument {
  return {
    ...doc, nodes: doc.nodes.filter((n) => !nodes.includes(n.id)),
    edges: doc.edges.filter((e, i) => !edges.includes(i) && !nodes.includes(e.source) && !nodes.includes(e.target)),
  };
}

export function changeNode(doc: HookDocument, id: string, change: (node: HookNode) => HookNode): HookDocument {
  return { ...doc, nodes: doc.nodes.map((n) => (n.id === id ? change(n) : n)) };
}

/** Sets members of a node's data; undefined takes one out. */
export function setData(doc: HookDocument, id: string, members: Json): HookDocument {
  return changeNode(doc, id, (n) => ({ ...n, data: merged(n.data ?? {}, members) }));
}

/** Sets members of a hook; undefined takes one out. */
export function setHook(doc: HookDocument, id: string, members: Json): HookDocument {
  return changeNode(doc, id, (n) => ({ ...n, data: { ...n.data, hook: merged(hookOf(n), members) } }));
}

/** Sets members of the document; undefined takes one out. */
export function setMembers(doc: HookDocument, members: Json): HookDocument {
  return merged(doc, members) as HookDocument;
}

export function move(doc: HookDocument, places: Map<string, Point>): HookDocument {
  return { ...doc, nodes: doc.nodes.map((n) => { const at = places.get(n.id); return at === undefined ? n : { ...n, position: rounded(at) }; }) };
}

/** Gives a node another id, in its edges too. */
export function rename(doc: HookDocument, from: string, to: string): HookDocument {
  const end = (id: string) => (id === from ? to : id);
  return { ...changeNode(doc, from, (n) => ({ ...n, id: to })), edges: doc.edges.map((e) => ({ ...e, source: end(e.source), target: end(e.target) })) };
}

function merged(object: Json, members: Json): Json {
  return Object.fromEntries(Object.entries({ ...object, ...members }).filter(([, v]) => v !== undefined));
}

function rounded(p: Point): Point {
  return { x: Math.round(p.x), y: Math.round(p.y) };
}

const order = ["id", "name", "description", "version", "type", "workflowType", "also", "order", "template", "bindings", "variables", "nodes", "edges", "source", "sourceHandle", "target", "position", "data", "label", "hook"];

/** A document as text, in one order, to compare it with another. */
export function textOf(doc: unknown): string {
  return JSON.stringify(doc, (_, v: unknown) => (isObject(v) ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b))) : v), 2);
}

function rank(key: string): number {
  const at = order.indexOf(key);
  return at < 0 ? order.length : at;
}

/** A graph to begin with: the call goes through. */
export const beginning: HookDocument = {
  id: "my-graph", name: "My graph", workflowType: "tools/call",
  nodes: [
    { id: "start", type: "start", position: { x: 0, y: 0 }, data: { label: "Start" } },
    { id: "call", type: "mcp-call", position: { x: 0, y: 130 }, data: { label: "MCP call" } },
    { id: "end", type: "end", position: { x: 0, y: 260 }, data: { label: "End" } },
  ],
  edges: [{ source: "start", target: "call" }, { source: "call", target: "end" }],
};
