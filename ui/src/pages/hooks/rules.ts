import { isAside, nodeOf, titleOf, type HookDocument, type HookNode, type Kind } from "./document";

/** A way that somebody wants to draw. */
export interface Wanted {
  source: string;
  target: string;
  branch?: string | undefined;
}

/** Why a way cannot be drawn; undefined where it can. The server has the same rules, and the last word. */
export function whyNot(doc: HookDocument, { source, target, branch }: Wanted): string | undefined {
  const from = nodeOf(doc, source);
  const to = nodeOf(doc, target);
  if (from === undefined || to === undefined) return "There is no such node.";
  return whyNotFrom(from, branch) ?? whyNotTo(doc, from, to) ?? whyNotOn(doc, from, to, branch) ?? whyNotCall(doc, from, to);
}

function whyNotFrom(from: HookNode, branch: string | undefined): string | undefined {
  if (from.type === "end") return "An end node has no outgoing edges.";
  if (isAside(from)) return `${titleOf(from)} is a fire-and-forget hook, which has no outgoing edges.`;
  if (from.type === "condition" && branch !== "true" && branch !== "false") return "An edge from a condition is for true or for false.";
  return undefined;
}

function whyNotTo(doc: HookDocument, from: HookNode, to: HookNode): string | undefined {
  if (from.id === to.id) return "A node cannot be connected to itself.";
  if (to.type === "start") return "A start node has no incoming edges.";
  if (doc.edges.some((e) => e.source === from.id && e.target === to.id)) return `${titleOf(from)} is connected to ${titleOf(to)} already.`;
  if (after(doc, to.id).has(from.id)) return "This edge would create a loop.";
  if (doc.edges.some((e) => e.target === to.id)) return `${titleOf(to)} has an incoming edge already.`;
  return undefined;
}

function whyNotOn(doc: HookDocument, from: HookNode, to: HookNode, branch: string | undefined): string | undefined {
  if (isAside(to)) return undefined;
  const on = doc.edges.find((e) => {
    const target = nodeOf(doc, e.target);
    return e.source === from.id && target !== undefined && !isAside(target) && (from.type !== "condition" || e.sourceHandle === branch);
  });
  if (on === undefined) return undefined;
  const where = from.type === "condition" ? ` for ${branch ?? ""}` : "";
  return `${titleOf(from)} has an outgoing edge${where} already; further ones may only lead to fire-and-forget hooks.`;
}

/** A call is sent once at most on each way. */
function whyNotCall(doc: HookDocument, from: HookNode, to: HookNode): string | undefined {
  const isCall = (id: string) => nodeOf(doc, id)?.type === "mcp-call";
  const before = [from.id, ...above(doc, from.id)].some(isCall);
  const behind = [to.id, ...after(doc, to.id)].some(isCall);
  return before && behind ? "The call would be sent twice: a path has one MCP call." : undefined;
}

/** The nodes that a node leads to, however far. */
export function after(doc: HookDocument, id: string): Set<string> {
  return reached(id, (at) => doc.edges.filter((e) => e.source === at).map((e) => e.target));
}

/** The nodes that lead to a node, however far. */
export function above(doc: HookDocument, id: string): Set<string> {
  return reached(id, (at) => doc.edges.filter((e) => e.target === at).map((e) => e.source));
}

function reached(id: string, next: (id: string) => string[]): Set<string> {
  const seen = new Set<string>();
  const queue = [id];
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const to of next(at)) if (!seen.has(to)) { seen.add(to); queue.push(to); }
  }
  return seen;
}

/** Why a node of a kind cannot be added; undefined where it can. */
export function whyNoNode(doc: HookDocument, kind: Kind): string | undefined {
  if (kind === "start" && doc.nodes.some((n) => n.type === "start")) return "A graph has one start.";
  return doc.nodes.length >= 200 ? "A graph has at most 200 nodes." : undefined;
}

/** Why a node of a kind cannot be put into a way; undefined where it can. */
export function whyNotInto(doc: HookDocument, kind: Kind, edge: number): string | undefined {
  const e = doc.edges[edge];
  if (e === undefined) return "There is no such edge.";
  if (kind === "start") return "A start node has no incoming edges.";
  if (kind === "end") return "An end node has no outgoing edges.";
  const target = nodeOf(doc, e.target);
  if (target !== undefined && isAside(target)) return "A node cannot be inserted before a fire-and-forget hook.";
  const call = (id: string) => nodeOf(doc, id)?.type === "mcp-call";
  if (kind === "mcp-call" && [e.source, e.target, ...above(doc, e.source), ...after(doc, e.target)].some(call)) return "The call would be sent twice: a path has one MCP call.";
  return undefined;
}
