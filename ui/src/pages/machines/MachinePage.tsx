import { useMemo } from "react";
import { ApiError } from "../../api/client";
import { useMachine } from "../../api/machines";
import { Graph } from "../../graph/Graph";
import { machineGraph } from "../../graph/machines";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { StartMachine } from "./StartMachine";
import "./machines.css";

/** A machine: its states beside its configuration and its script. */
export function MachinePage({ name }: { name: string }) {
  useTitle(name);
  const machine = useMachine(name);
  const model = useMemo(() => (machine.data === undefined ? undefined : machineGraph(machine.data.definition, machine.data.ways)), [machine.data]);
  if (machine.isPending) return <Skeleton rows={12} />;
  if (machine.isError) {
    if (machine.error instanceof ApiError && machine.error.status === 404) return <Missing what="machine" />;
    return <Failed error={machine.error} doing="read the machine" retry={() => void machine.refetch()} />;
  }
  const { machine: info, source, definition, diagnostics } = machine.data;
  return (
    <div className="machine">
      <header className="head">
        <div>
          <h1>{info.name}</h1>
          <p className="prose">{info.description}</p>
          <p className="mono quiet">{info.path}</p>
        </div>
        <StartMachine machine={info} />
      </header>
      {diagnostics.map((d, i) => <p key={i} role="note">Line {d.line}: {d.message}{d.fix === undefined ? "" : ` (${d.fix})`}</p>)}
      <div className="machine-body">
        {model === undefined ? null : <Graph model={model} label={`States of ${info.name}`} />}
        <div className="card machine-source" tabIndex={0} role="region" aria-label="Source">
          <h2>Configuration</h2>
          <pre>{source}</pre>
          {definition.script === undefined ? null : <><h2>Script</h2><pre>{definition.script}</pre></>}
        </div>
      </div>
    </div>
  );
}
