import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import type { GraphNode, NodeState } from "./model";

export type PartNode = Node<{ node: GraphNode; state: NodeState | undefined; said: string; frame: boolean; chosen: boolean }, "part">;

/** What a state is called, for those who do not see its colour. */
const stateWords: Record<NodeState, string> = { done: "done", skipped: "skipped", refused: "refused", here: "the run is here", ahead: "" };

/** Returns a state in words; a completed step has its label. */
export function wordsOn(state: NodeState, label: string | undefined): string {
  return state === "done" && label !== undefined ? `${stateWords[state]}, ${label}` : stateWords[state];
}

/** A node: a step, a gate, a decision, or a frame around what it holds. */
export function Part({ data }: NodeProps<PartNode>) {
  const { node, state, frame, chosen } = data;
  const said = [data.said, node.note ?? ""].filter((t) => t !== "").join(" · ");
  return (
    <div className="node" data-kind={node.kind} data-state={state} data-frame={frame || undefined} data-chosen={chosen || undefined} title={[node.title, said].join("\n").trim()}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <div className="node-title">{node.title}</div>
      {said === "" ? null : <div className="node-note">{said}</div>}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
}
