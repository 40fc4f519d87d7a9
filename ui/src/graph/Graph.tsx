import { Background, Controls, MarkerType, MiniMap, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useMemo, useRef, useState, type KeyboardEvent } from "react";
import { GraphSearch } from "./GraphSearch";
import { place, type Drawing, type Placed } from "./layout";
import type { GraphModel, NodeState } from "./model";
import { Part, wordsOn, type PartNode } from "./Part";
import { Way, type WayEdge } from "./Way";
import "./graph.css";

interface Props {
  model: GraphModel;
  /** Where a run stands with each node; none is a definition without a run. */
  states?: Map<string, NodeState>;
  /** Whether a completed step is evidence or a claim, by the id of its node. */
  labels?: Map<string, string> | undefined;
  /** The element that is chosen, by the id that the definition gives it. */
  chosen?: string | undefined;
  onChoose?: (ref: string | undefined) => void;
  label: string;
}

type Flow = ReactFlowInstance<PartNode, WayEdge>;

const nodeTypes = { part: Part };
const edgeTypes = { way: Way };
/** From so many nodes on there is a map. */
const mapFrom = 40;
const mapSize = { width: 112, height: 128 };

/** Draws a definition of any dialect: frames for what holds others, gates as
 * hexagons, and where a run is. */
export function Graph({ model, states, labels, chosen, onChoose, label }: Props) {
  const drawing = useMemo(() => place(model), [model]);
  const nodes = useMemo(() => nodesOf(drawing, states, labels, chosen), [drawing, states, labels, chosen]);
  const edges = useMemo(() => edgesOf(drawing), [drawing]);
  const box = useRef<HTMLDivElement>(null);
  const [flow, setFlow] = useState<Flow | undefined>();
  const here = innermost(nodes.filter((n) => n.data.state === "here"));
  const show = (id: string) => {
    const at = flow === undefined ? undefined : centre(flow, id);
    if (at !== undefined) void flow?.setCenter(at.x, at.y, { zoom: Math.max(0.8, Math.min(1, flow.getZoom())) });
  };
  return (
    <div className="graph" role="group" aria-label={label} onKeyDown={(e) => travel(e, drawing, show, (ref) => onChoose?.(ref === chosen ? undefined : ref))}>
      <div className="graph-tools">
        <GraphSearch model={model} onFind={(id) => { show(id); focusNode(box.current, id); }} />
        {here === undefined ? null : <button type="button" className="button button-small" onClick={() => show(here.id)}>Where the run is</button>}
      </div>
      <div ref={box} className="graph-canvas">
        <ReactFlow<PartNode, WayEdge>
          nodes={nodes} edges={edges} nodeTypes={nodeTypes} edgeTypes={edgeTypes}
          onInit={(f) => { setFlow(f); begin(f, drawing, here, box.current); }}
          minZoom={0.1} maxZoom={1.5} nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} deleteKeyCode={null}
          onlyRenderVisibleElements={nodes.length > 120} proOptions={{ hideAttribution: true }}
          onNodeClick={(_, n) => onChoose?.(n.data.chosen ? undefined : n.data.node.ref)} onPaneClick={() => onChoose?.(undefined)}
        >
          <Background gap={16} />
          <Controls showInteractive={false} fitViewOptions={{ maxZoom: 1 }} />
          {model.nodes.length > mapFrom ? <MiniMap pannable zoomable style={mapSize} ariaLabel="Map of the graph" nodeClassName={(n) => `map-${n.data.state ?? "plain"}`} /> : null}
        </ReactFlow>
      </div>
    </div>
  );
}

function nodesOf(drawing: Drawing, states: Map<string, NodeState> | undefined, labels: Map<string, string> | undefined, chosen: string | undefined): PartNode[] {
  const frames = new Set(drawing.nodes.map((p) => p.node.parent).filter((p) => p !== undefined));
  return drawing.nodes.map(({ node, x, y, width, height }): PartNode => {
    const state = states?.get(node.id);
    const said = state === undefined ? "" : wordsOn(state, labels?.get(node.id));
    return {
      id: node.id, type: "part", position: { x, y }, width, height,
      ...(node.parent === undefined ? {} : { parentId: node.parent }),
      data: { node, state, said, frame: frames.has(node.id), chosen: chosen !== undefined && node.ref === chosen },
      ariaLabel: [node.kind, node.title, said].filter((t) => t !== "").join(", "),
    };
  });
}

function edgesOf(drawing: Drawing): WayEdge[] {
  const parents = new Map(drawing.nodes.map((p) => [p.node.id, p.node.parent]));
  return drawing.edges.map((routed, i): WayEdge => ({
    id: String(i), source: routed.edge.from, target: routed.edge.to, type: "way", data: { routed },
    markerEnd: { type: MarkerType.ArrowClosed }, zIndex: parents.get(routed.edge.from) === undefined ? 0 : 10,
  }));
}

/** The one that lies in the others: a step rather than its loop or phase. */
function innermost(here: PartNode[]): PartNode | undefined {
  return here.find((n) => !here.some((other) => other.parentId === n.id)) ?? here[0];
}

function centre(flow: Flow, id: string): { x: number; y: number } | undefined {
  const node = flow.getInternalNode(id);
  if (node === undefined) return undefined;
  const { x, y } = node.internals.positionAbsolute;
  return { x: x + (node.width ?? 0) / 2, y: y + Math.min((node.height ?? 0) / 2, 200) };
}

/** Begins at the top, or where the run is, as large as can be read. */
function begin(flow: Flow, drawing: Drawing, here: PartNode | undefined, box: HTMLDivElement | null) {
  const width = box?.clientWidth ?? 800;
  const height = box?.clientHeight ?? 600;
  const zoom = Math.max(0.7, Math.min(1, width / drawing.width));
  const first = drawing.nodes[0];
  const at = (here === undefined ? undefined : centre(flow, here.id)) ?? { x: first === undefined ? 0 : first.x + first.width / 2, y: 0 };
  void flow.setViewport({ x: inView(at.x, drawing.width, width, zoom), y: inView(at.y, drawing.height, height, zoom), zoom });
}

/** Brings a place to the middle as far as no empty space comes into view; what fits stands in the middle. */
function inView(at: number, drawn: number, seen: number, zoom: number): number {
  if (drawn * zoom <= seen) return (seen - drawn * zoom) / 2;
  return Math.min(0, Math.max(seen - drawn * zoom, seen / 2 - at * zoom));
}

/** The arrow keys lead from a node to the next in the order of the document; Enter chooses it. */
function travel(e: KeyboardEvent<HTMLDivElement>, drawing: Drawing, show: (id: string) => void, choose: (ref: string | undefined) => void) {
  const from = e.target instanceof HTMLElement ? e.target.closest<HTMLElement>(".react-flow__node")?.dataset["id"] : undefined;
  const at = drawing.nodes.findIndex((p) => p.node.id === from);
  if (at < 0) return;
  if (e.key === "Enter") choose(drawing.nodes[at]?.node.ref);
  const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
  const next: Placed | undefined = step === 0 ? undefined : drawing.nodes[at + step];
  if (next === undefined) return;
  e.preventDefault();
  show(next.node.id);
  focusNode(e.currentTarget, next.node.id);
}

function focusNode(box: HTMLElement | null, id: string) {
  requestAnimationFrame(() => box?.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`)?.focus({ preventScroll: true }));
}
