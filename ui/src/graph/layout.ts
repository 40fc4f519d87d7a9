import dagre from "@dagrejs/dagre";
import type { GraphModel, GraphNode } from "./model";

/** Where a node is drawn, in its parent's frame if it has one. */
export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
  width: number;
  height: number;
}

const nodeWidth = 232;
const nodeHeight = 52;
const gap = 16;
const frameTop = 44;

/**
 * Places a graph from top to bottom. The parts of a frame stand in one column, as
 * they follow each other; frames and free nodes are laid out by their ways.
 */
export function place(model: GraphModel): Placed[] {
  const parts = new Map<string, GraphNode[]>();
  for (const node of model.nodes) {
    if (node.parent !== undefined) parts.set(node.parent, [...(parts.get(node.parent) ?? []), node]);
  }
  const size = (node: GraphNode) => {
    const count = parts.get(node.id)?.length ?? 0;
    if (count === 0) return { width: nodeWidth, height: nodeHeight };
    return { width: nodeWidth + 2 * gap, height: frameTop + count * (nodeHeight + gap) };
  };
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 48, ranksep: 64, marginx: 24, marginy: 24 });
  graph.setDefaultEdgeLabel(() => ({}));
  const top = model.nodes.filter((n) => n.parent === undefined);
  for (const node of top) graph.setNode(node.id, size(node));
  model.edges.forEach((edge, i) => {
    if (!graph.hasNode(edge.from) || !graph.hasNode(edge.to) || edge.from === edge.to) return;
    const width = edge.label === undefined ? 0 : Math.min(edge.label.length * 6.5, 220);
    graph.setEdge(edge.from, edge.to, { width, height: edge.label === undefined ? 0 : 20, labelpos: "c" }, String(i));
  });
  dagre.layout(graph);
  return top.flatMap((node) => {
    const at = graph.node(node.id);
    const { width, height } = size(node);
    const frame: Placed = { node, x: at.x - width / 2, y: at.y - height / 2, width, height };
    const inside = (parts.get(node.id) ?? []).map((part, i): Placed => ({
      node: part, x: gap, y: frameTop + i * (nodeHeight + gap), width: nodeWidth, height: nodeHeight,
    }));
    return [frame, ...inside];
  });
}
