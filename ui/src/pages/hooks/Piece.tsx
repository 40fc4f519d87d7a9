import { Handle, Position, type Node, type NodeProps } from "@xyflow/react";
import { conditionWords } from "../../graph/conditions";
import { text } from "../../graph/json";
import { hookOf, isAside, kindNames, titleOf, type HookNode } from "./document";

/** What is to be seen at a node besides itself. */
export interface Marks {
  /** Findings of the server. */
  errors: number;
  warnings: number;
  /** What it took, in a trial or in the calls of late. */
  note?: string;
  /** How hot it ran, from 0 to 1; or that it failed. */
  heat?: number;
  failed?: boolean;
}

export type PieceNode = Node<{ node: HookNode; marks: Marks | undefined; chosen: boolean; cannot: string | undefined }, "piece" | "aside">;

/** A node of a hook graph: what it is, what it does, and where ways begin and end. */
export function Piece({ data }: NodeProps<PieceNode>) {
  const { node, marks, chosen, cannot } = data;
  const found = (marks?.errors ?? 0) > 0 ? "error" : (marks?.warnings ?? 0) > 0 ? "warning" : undefined;
  return (
    <div className="piece" data-kind={node.type} data-aside={isAside(node) || undefined} data-found={found} data-chosen={chosen || undefined} data-cannot={cannot === undefined ? undefined : true} data-failed={marks?.failed || undefined} data-heat={heatOf(marks?.heat)} title={cannot}>
      {node.type === "start" ? null : <Handle type="target" position={Position.Top} />}
      <div className="piece-head"><span className="piece-kind">{kindOf(node) === titleOf(node) ? "" : kindOf(node)}</span>{found === undefined ? null : <span className="piece-found">{found === "error" ? `✕ ${marks?.errors ?? 0}` : `⚠ ${marks?.warnings ?? 0}`}</span>}</div>
      <div className="piece-title">{titleOf(node)}</div>
      <div className="piece-note">{[doesOf(node), marks?.note ?? ""].filter((t) => t !== "").join(" · ")}</div>
      {node.type === "end" || isAside(node) ? null : node.type === "condition" ? (
        <>
          <Handle type="source" id="true" position={Position.Bottom} className="handle-true" />
          <Handle type="source" id="false" position={Position.Bottom} className="handle-false" />
        </>
      ) : <Handle type="source" position={Position.Bottom} />}
    </div>
  );
}

/** The kind of a node in words. */
export function kindOf(node: HookNode): string {
  if (isAside(node)) return "Fire-and-forget hook";
  return node.type === "hook" && hookOf(node)["answers"] === true ? "Hook that answers" : kindNames[node.type];
}

/** What a node does, in a few words. */
export function doesOf(node: HookNode): string {
  if (node.type === "condition") return conditionWords(node.data?.["condition"]) ?? "no condition";
  if (node.type !== "hook") return "";
  const module = text(hookOf(node)["hookModuleId"]);
  if (module !== "") return `${module}.js`;
  const lines = text(hookOf(node)["script"]).split("\n").map((l) => l.trim()).filter((l) => l !== "" && !l.startsWith("//"));
  return lines[0] ?? "no script yet";
}

/** Heat in five steps, for the look. */
function heatOf(heat: number | undefined): number | undefined {
  return heat === undefined ? undefined : Math.min(4, Math.floor(heat * 5));
}

/** A node in words, for those who do not see it. */
export function pieceWords(node: HookNode, marks: Marks | undefined): string {
  return [kindOf(node), titleOf(node), doesOf(node), marks?.note ?? "", (marks?.errors ?? 0) > 0 ? `${marks?.errors ?? 0} errors` : ""].filter((t) => t !== "").join(", ");
}
