import { Background, Controls, Handle, MarkerType, MiniMap, Position, ReactFlow, type Edge, type Node, type NodeProps } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { useMemo } from "react";
import { place } from "./layout";
import type { GraphModel, GraphNode, NodeState } from "./model";
import "./graph.css";

interface Props {
  model: GraphModel;
  /** Where a run stands with each node; none is a definition without a run. */
  states?: Map<string, NodeState>;
  label: string;
}

type Data = { node: GraphNode; state: NodeState | undefined; frame: boolean };

const nodeTypes = { part: Part };
const words: Record<NodeState, string> = { done: "done", skipped: "skipped", refused: "refused", here: "the run is here", ahead: "" };

/** Draws a definition of any dialect: frames for what holds others, gates as
 * hexagons, and where a run is. */
export function Graph({ model, states, label }: Props) {
  const { nodes, edges } = useMemo(() => drawn(model, states), [model, states]);
  const here = nodes.filter((n) => n.data.state === "here");
  return (
    <div className="graph" role="group" aria-label={label}>
      <ReactFlow
        nodes={nodes} edges={edges} nodeTypes={nodeTypes} fitView
        fitViewOptions={here.length > 0 ? { nodes: here, maxZoom: 1, minZoom: 0.6 } : { maxZoom: 1, minZoom: 0.4 }}
        minZoom={0.1} maxZoom={1.5} nodesDraggable={false} nodesConnectable={false} edgesFocusable={false}
        proOptions={{ hideAttribution: true }}
      >
        <Background gap={16} />
        <Controls showInteractive={false} />
        {model.nodes.length > 40 ? <MiniMap pannable zoomable ariaLabel="Map of the graph" /> : null}
      </ReactFlow>
    </div>
  );
}

function drawn(model: GraphModel, states: Map<string, NodeState> | undefined): { nodes: Node<Data>[]; edges: Edge[] } {
  const placed = place(model);
  const frames = new Set(model.nodes.map((n) => n.parent).filter((p) => p !== undefined));
  const nodes = placed.map(({ node, x, y, width, height }): Node<Data> => ({
    id: node.id, type: "part", position: { x, y }, width, height, style: { width, height },
    ...(node.parent === undefined ? {} : { parentId: node.parent, extent: "parent" as const }),
    data: { node, state: states?.get(node.id), frame: frames.has(node.id) },
    ariaLabel: `${node.kind} ${node.title}${states?.has(node.id) === true ? `, ${words[states.get(node.id) ?? "ahead"]}` : ""}`,
  }));
  const edges = model.edges.map((e, i): Edge => ({
    id: String(i), source: e.from, target: e.to, type: "smoothstep", markerEnd: { type: MarkerType.ArrowClosed },
    ...(e.label === undefined ? {} : { label: e.label.length > 44 ? `${e.label.slice(0, 43)}…` : e.label }),
  }));
  return { nodes, edges };
}

function Part({ data }: NodeProps<Node<Data>>) {
  const { node, state, frame } = data;
  return (
    <div className="node" data-kind={node.kind} data-state={state} data-frame={frame || undefined} title={node.title}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <div className="node-title">{node.title}</div>
      {node.note === undefined && (state === undefined || state === "ahead") ? null : (
        <div className="node-note">{[state === undefined || state === "ahead" ? "" : words[state], node.note ?? ""].filter((t) => t !== "").join(" · ")}</div>
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
}
