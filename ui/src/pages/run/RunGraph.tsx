import type { UseQueryResult } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { Graph } from "../../graph/Graph";
import type { GraphModel } from "../../graph/model";
import { labelsOf, statesOf } from "../../graph/states";
import { Empty, Failed, Skeleton } from "../../parts/States";

interface Props {
  definition: UseQueryResult<Schemas["Definition"]>;
  model: GraphModel | undefined;
  position: Schemas["Position"];
  events: Schemas["Event"][];
  chosen: string | undefined;
  onChoose: (ref: string | undefined) => void;
}

/** The run's definition as a graph, with where the run is. */
export function RunGraph({ definition, model, position, events, chosen, onChoose }: Props) {
  const states = useMemo(() => (model === undefined ? undefined : statesOf(model, position, events)), [model, position, events]);
  const labels = useMemo(() => (model === undefined ? undefined : labelsOf(events)), [model, events]);
  if (definition.isPending) return <Skeleton rows={12} />;
  if (definition.isError) return <Failed error={definition.error} doing="read the definition" retry={() => void definition.refetch()} />;
  if (model === undefined || states === undefined) return <Empty title="No graph">This definition cannot be drawn.</Empty>;
  return <Graph model={model} states={states} labels={labels} chosen={chosen} onChoose={onChoose} label="The workflow and where the run is" />;
}
