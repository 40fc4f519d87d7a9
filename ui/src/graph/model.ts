import { isObject, list } from "./json";
import { phasesGraph } from "./phases";
import { stepsGraph } from "./steps";

/** What a node of any definition stands for. */
export type NodeKind = "step" | "gate" | "decision" | "loop" | "phase" | "end";

/** Where a run stands with a node. */
export type NodeState = "done" | "skipped" | "refused" | "here" | "ahead";

/** A node of a definition's graph. One that has a parent is drawn in its frame. */
export interface GraphNode {
  id: string;
  kind: NodeKind;
  title: string;
  /** The id that the definition gives it; ids of nodes are unique, these need not be. */
  ref?: string;
  /** What is said under the title. */
  note?: string;
  parent?: string;
}

/** A way from a node to another, with its condition in words. */
export interface GraphEdge {
  from: string;
  to: string;
  label?: string;
}

/** A definition of any dialect as nodes and ways. */
export interface GraphModel {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

/** The id of the node where a workflow ends. */
export const endID = "(end)";

/** The id of a part of a phase: two phases may name their parts alike. */
export function inPhase(phase: string, id: string): string {
  return `${phase}/${id}`;
}

/** Reads a definition; undefined where it is of no dialect that is known. */
export function graphOf(definition: unknown): GraphModel | undefined {
  if (!isObject(definition)) return undefined;
  if (Array.isArray(definition["phases"])) return phasesGraph(list(definition["phases"]));
  if (Array.isArray(definition["steps"])) return stepsGraph(list(definition["steps"]));
  return undefined;
}
