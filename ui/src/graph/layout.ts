import dagre from "@dagrejs/dagre";
import type { GraphEdge, GraphModel, GraphNode } from "./model";

/** Where a node is drawn, in its parent's frame if it has one. */
export interface Placed {
  node: GraphNode;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** The way of an edge over the whole drawing, and where its label stands. */
export interface Routed {
  edge: GraphEdge;
  points: Point[];
  label?: Point & { width: number; height: number };
}

/** A drawing without overlaps. */
export interface Drawing {
  nodes: Placed[];
  edges: Routed[];
  width: number;
  height: number;
}

const nodeWidth = 232;
const nodeHeight = 52;
const gateWidth = 264;
const frameSide = 16;
const frameTop = 48;
const labelWidth = 200;
/** About what fits into a line of a label. */
const labelLine = 30;
const labelLines = 3;

interface Block {
  width: number;
  height: number;
  nodes: Placed[];
  edges: Routed[];
}

/** Places a graph from top to bottom: what a frame holds first, then the frames. */
export function place(model: GraphModel): Drawing {
  const inside = new Map<string | undefined, GraphNode[]>();
  for (const node of model.nodes) inside.set(node.parent, [...(inside.get(node.parent) ?? []), node]);
  return placeIn(model, inside, undefined);
}

function placeIn(model: GraphModel, inside: Map<string | undefined, GraphNode[]>, parent: string | undefined): Block {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  const margin = parent === undefined ? 24 : 0;
  graph.setGraph({ rankdir: "TB", nodesep: 40, edgesep: 24, ranksep: parent === undefined ? 36 : 24, marginx: margin, marginy: margin });
  graph.setDefaultEdgeLabel(() => ({}));
  const members = inside.get(parent) ?? [];
  const blocks = new Map<string, Block>();
  for (const node of members) {
    if (inside.has(node.id)) blocks.set(node.id, placeIn(model, inside, node.id));
    graph.setNode(node.id, sizeOf(node, blocks.get(node.id)));
  }
  const ids = new Set(members.map((n) => n.id));
  const edges = model.edges.filter((e) => ids.has(e.from) && ids.has(e.to) && e.from !== e.to);
  edges.forEach((edge, i) => graph.setEdge(edge.from, edge.to, { ...labelSize(edge.label), labelpos: "c" }, String(i)));
  dagre.layout(graph);
  const size = graph.graph();
  const block: Block = { width: size.width ?? 0, height: size.height ?? 0, nodes: [], edges: [] };
  for (const node of members) {
    const { x, y, width, height } = graph.node(node.id);
    block.nodes.push({ node, x: x - width / 2, y: y - height / 2, width, height });
    addInside(block, blocks.get(node.id), { x: x - width / 2, y: y - height / 2 }, width);
  }
  edges.forEach((edge, i) => block.edges.push(routed(edge, graph.edge(edge.from, edge.to, String(i)) as unknown as Laid)));
  return block;
}

/** Nodes in a frame keep their places in it; ways are told over the whole drawing. */
function addInside(block: Block, inner: Block | undefined, frame: Point, width: number) {
  if (inner === undefined) return;
  const left = (width - inner.width) / 2;
  for (const p of inner.nodes) {
    const own = inner.nodes.some((n) => n.node.id === p.node.parent);
    block.nodes.push(own ? p : { ...p, x: p.x + left, y: p.y + frameTop });
  }
  const move = (p: Point): Point => ({ x: p.x + frame.x + left, y: p.y + frame.y + frameTop });
  for (const e of inner.edges) {
    block.edges.push({ ...e, points: e.points.map(move), ...(e.label === undefined ? {} : { label: { ...e.label, ...move(e.label) } }) });
  }
}

function sizeOf(node: GraphNode, inner: Block | undefined): { width: number; height: number } {
  if (inner !== undefined) return { width: Math.max(inner.width, nodeWidth) + 2 * frameSide, height: inner.height + frameTop + frameSide };
  return { width: node.kind === "gate" ? gateWidth : node.kind === "end" ? 96 : nodeWidth, height: node.kind === "end" ? 36 : nodeHeight };
}

function labelSize(label: string | undefined): { width: number; height: number } {
  if (label === undefined) return { width: 0, height: 0 };
  const lines = Math.min(labelLines, Math.ceil(label.length / labelLine));
  return { width: lines > 1 ? labelWidth : Math.min(labelWidth, label.length * 7 + 12), height: lines * 16 + 4 };
}

/** What dagre says of an edge that was laid out. */
interface Laid extends Point {
  points: Point[];
  width: number;
  height: number;
}

function routed(edge: GraphEdge, { points: way, x, y, width, height }: Laid): Routed {
  const points = way.map((p) => ({ x: p.x, y: p.y }));
  return { edge, points, ...(edge.label === undefined ? {} : { label: { x, y, width, height } }) };
}
