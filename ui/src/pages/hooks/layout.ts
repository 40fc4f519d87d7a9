import { isAside, move, nodeOf, type HookDocument, type HookEdge, type Point } from "./document";

export const nodeSize = { width: 208, height: 60 };
const column = nodeSize.width + 40;
const row = nodeSize.height + 64;

/** Whether every node has a place, and no two have the same. */
export function isPlaced(doc: HookDocument): boolean {
  const places = doc.nodes.map((n) => (n.position === undefined ? undefined : `${n.position.x},${n.position.y}`));
  return !places.includes(undefined) && new Set(places).size === places.length;
}

/**
 * Places all nodes from top to bottom, so that none lies on another: the way of a
 * request goes straight down, true is left of false, and what runs aside is on the
 * right. A graph is a tree, or will be; what is in no tree yet comes behind.
 */
export function arranged(doc: HookDocument): HookDocument {
  const places = new Map<string, Point>();
  const seen = new Set<string>();
  let columns = 0;
  const put = (id: string, depth: number): number => {
    seen.add(id);
    const ways = waysFrom(doc, id).filter((e) => !seen.has(e.target) && seen.add(e.target));
    const xs = ways.map((e) => put(e.target, depth + 1));
    const first = xs[0] ?? columns++;
    const other = ways[1]?.sourceHandle === "false" && ways[0]?.sourceHandle === "true" ? xs[1] : undefined;
    const x = other === undefined ? first : (first + other) / 2;
    places.set(id, { x: x * column, y: depth * row });
    return x;
  };
  const roots = doc.nodes.filter((n) => !doc.edges.some((e) => e.target === n.id)).sort((a, b) => Number(b.type === "start") - Number(a.type === "start"));
  for (const n of [...roots, ...doc.nodes]) if (!seen.has(n.id)) put(n.id, 0);
  return move(doc, places);
}

/** The ways on from a node: those of the request first, true before false. */
function waysFrom(doc: HookDocument, id: string): HookEdge[] {
  const rank = (e: HookEdge) => { const to = nodeOf(doc, e.target); return (to !== undefined && isAside(to) ? 2 : 0) + (e.sourceHandle === "false" ? 1 : 0); };
  return doc.edges.filter((e) => e.source === id && nodeOf(doc, e.target) !== undefined).sort((a, b) => rank(a) - rank(b));
}

/** A free place below what is there. */
export function freePlace(doc: HookDocument): Point {
  let y = 0;
  let x = 0;
  for (const n of doc.nodes) if (n.position !== undefined && n.position.y + 130 > y) { y = n.position.y + 130; x = n.position.x; }
  return { x, y };
}
