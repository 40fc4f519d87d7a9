import dagre from "@dagrejs/dagre";
import { move, type HookDocument, type Point } from "./document";

export const nodeSize = { width: 208, height: 60 };

/** Whether every node has a place, and no two have the same. */
export function isPlaced(doc: HookDocument): boolean {
  const places = doc.nodes.map((n) => (n.position === undefined ? undefined : `${n.position.x},${n.position.y}`));
  return !places.includes(undefined) && new Set(places).size === places.length;
}

/** Places all nodes from top to bottom, so that none lies on another. */
export function arranged(doc: HookDocument): HookDocument {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 40, ranksep: 64 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const n of doc.nodes) graph.setNode(n.id, { ...nodeSize });
  const ids = new Set(doc.nodes.map((n) => n.id));
  for (const e of doc.edges) if (ids.has(e.source) && ids.has(e.target)) graph.setEdge(e.source, e.target);
  dagre.layout(graph);
  const places = new Map<string, Point>();
  for (const n of doc.nodes) {
    const { x, y } = graph.node(n.id);
    places.set(n.id, { x: x - nodeSize.width / 2, y: y - nodeSize.height / 2 });
  }
  return move(doc, places);
}

/** A free place below what is there. */
export function freePlace(doc: HookDocument): Point {
  let y = 0;
  let x = 0;
  for (const n of doc.nodes) if (n.position !== undefined && n.position.y + 130 > y) { y = n.position.y + 130; x = n.position.x; }
  return { x, y };
}
