import type { Schemas } from "../api/client";
import { isObject, list, text } from "./json";
import { endID, type GraphEdge, type GraphModel, type NodeState } from "./model";

/** The states of a machine as nodes, and what may follow each. */
export function machineGraph(pinned: Schemas["MachinePinned"], ways: Schemas["MachineWay"][]): GraphModel {
  const states = list(pinned.machine["states"]).filter(isObject);
  const nodes: GraphModel["nodes"] = states.filter((s) => text(s["name"]) !== "stop").map((s) => {
    const name = text(s["name"]);
    const note = noteOf(s);
    return { id: name, ref: name, kind: isObject(s["input"]) ? "gate" : "step", title: name, ...(note === "" ? {} : { note }) };
  });
  nodes.push({ id: endID, ref: "stop", kind: "end", title: "stop" });
  const edges = ways.map(({ from, to, sure, failed }): GraphEdge => ({
    from, to: to === "stop" ? endID : to, ...(failed === true ? { label: "failed" } : sure ? {} : { label: "may" }),
  }));
  return { nodes, edges };
}

function noteOf(s: Record<string, unknown>): string {
  const agent = text(s["agent"]);
  const input = s["input"];
  const sub = s["sub_machine"];
  if (agent !== "") return `agent ${agent}`;
  if (isObject(input)) return `waits for ${text(input["name"])}`;
  if (isObject(sub)) return `machine ${text(sub["machine"])}`;
  return text(sub) === "" ? "" : `machine ${text(sub)}`;
}

/** Where a run stands with each state. */
export function machineStates(run: Schemas["MachineStatus"]): Map<string, NodeState> {
  const states = new Map<string, NodeState>(run.states.map((name) => [name, "done"]));
  if (run.status === "completed") states.set(endID, "done");
  else if (run.state !== undefined && run.state !== "") states.set(run.state, run.status === "cancelled" ? "refused" : "here");
  return states;
}
