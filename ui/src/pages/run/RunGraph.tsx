import { useMemo } from "react";
import { useRunDefinition } from "../../api/reads";
import type { Schemas } from "../../api/client";
import { Graph } from "../../graph/Graph";
import { graphOf, inPhase, type NodeState } from "../../graph/model";
import { Failed, Skeleton } from "../../parts/States";

interface Props {
  runId: string;
  position: Schemas["Position"];
  events: Schemas["Event"][];
}

/** The run's definition as a graph, with where the run is. */
export function RunGraph({ runId, position, events }: Props) {
  const definition = useRunDefinition(runId);
  const model = useMemo(() => graphOf(definition.data), [definition.data]);
  const states = useMemo(() => statesOf(position, events), [position, events]);
  if (definition.isPending) return <Skeleton rows={12} />;
  if (definition.isError) return <Failed error={definition.error} doing="read the definition" retry={() => void definition.refetch()} />;
  if (model === undefined) return null;
  return <Graph model={model} states={states} label="The workflow and where the run is" />;
}

/** Where the run stands with each node that an event or the position names. */
function statesOf(position: Schemas["Position"], events: Schemas["Event"][]): Map<string, NodeState> {
  const states = new Map<string, NodeState>();
  let phase: string | undefined;
  const mark = (id: string, state: NodeState) => {
    states.set(id, state);
    if (phase !== undefined && phase !== id) states.set(inPhase(phase, id), state);
  };
  for (const event of events) {
    const step = stepOf(event);
    if (step === "") continue;
    if (event.kind === "phase_entered") phase = step;
    else if (["step_completed", "gate_answered", "checkpoint_response", "decision_branch_taken", "loop_ended", "loop_completed", "phase_exited"].includes(event.kind)) mark(step, "done");
    else if (event.kind === "step_skipped" || event.kind === "phase_skipped") mark(step, "skipped");
  }
  if (position.phase !== undefined) {
    phase = position.phase.id;
    states.set(phase, "here");
  }
  if (position.loop !== undefined) mark(position.loop.id, "here");
  if (position.kind === "end") mark("(end)", "here");
  else if (position.id !== undefined) mark(position.id, "here");
  return states;
}

function stepOf(event: Schemas["Event"]): string {
  const data = event.data;
  if (typeof data !== "object" || data === null || !("step" in data)) return "";
  return typeof data.step === "string" ? data.step : "";
}
