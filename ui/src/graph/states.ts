import type { Schemas } from "../api/client";
import { endID, inPhase, type GraphModel, type NodeState } from "./model";

/** What of an event decides where a run stands; a trial's events have it too. */
export interface Happened {
  kind: string;
  data?: unknown;
}

const done = new Set([
  "step_completed", "gate_answered", "checkpoint_response", "decision_branch_taken", "decision_passed",
  "loop_ended", "loop_completed", "loop_break", "phase_exited",
]);
const skipped = new Set(["step_skipped", "phase_skipped"]);
/** What begins a round: the steps of the loop are to be done again. */
const again = new Set(["round_started", "loop_iteration"]);

/** Where a run stands with each node that an event or the position names. */
export function statesOf(model: GraphModel, position: Schemas["Position"], events: Happened[]): Map<string, NodeState> {
  const known = new Set(model.nodes.map((n) => n.id));
  const states = new Map<string, NodeState>();
  let phase = "";
  const mark = (id: string, state: NodeState) => {
    const inside = inPhase(phase, id);
    if (phase !== "" && phase !== id && known.has(inside)) states.set(inside, state);
    else if (known.has(id)) states.set(id, state);
  };
  const reset = (loop: string) => {
    for (const n of model.nodes) if (n.parent === loop || n.parent === inPhase(phase, loop)) states.delete(n.id);
  };
  for (const { kind, data } of events) {
    const step = stepOf(data);
    if (kind === "run_completed") mark(endID, "done");
    if (step === "") continue;
    if (kind === "phase_entered") {
      phase = step;
      states.delete(step);
    } else if (again.has(kind)) reset(step);
    else if (done.has(kind)) mark(step, "done");
    else if (skipped.has(kind)) mark(step, "skipped");
  }
  if (position.phase !== undefined) {
    phase = position.phase.id;
    states.set(phase, "here");
  }
  if (position.loop !== undefined) mark(position.loop.id, "here");
  if (position.kind === "end") {
    if (states.get(endID) !== "done") mark(endID, "here");
  } else if (position.id !== undefined) mark(position.id, "here");
  return states;
}

/** Returns the label of the last completion of each step, by the id of its node. */
export function labelsOf(events: Schemas["Event"][]): Map<string, Schemas["StepLabel"]> {
  const labels = new Map<string, Schemas["StepLabel"]>();
  let phase = "";
  for (const { kind, data, label } of events) {
    const step = stepOf(data);
    if (kind === "phase_entered") phase = step;
    else if (kind === "step_completed" && label !== undefined) labels.set(phase === "" ? step : inPhase(phase, step), label);
  }
  return labels;
}

/** The element that an event is about; "" where it is about none. */
export function stepOf(data: unknown): string {
  if (typeof data !== "object" || data === null || !("step" in data)) return "";
  return typeof data.step === "string" ? data.step : "";
}
