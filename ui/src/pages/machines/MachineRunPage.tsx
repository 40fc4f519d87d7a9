import { useMemo } from "react";
import { Link } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useMachineCommand, useMachineNews, useMachineRun, type Saying } from "../../api/machines";
import { Graph } from "../../graph/Graph";
import { machineGraph, machineStates } from "../../graph/machines";
import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { Tabs } from "../../parts/Tabs";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import { Conversations } from "./Conversations";
import { MachineEvents } from "./MachineEvents";
import { MachineNeeds } from "./MachineNeeds";
import "./machines.css";

type Run = Schemas["MachineStatus"];

/** One run of a machine: what it needs, where it is, and what its agents say. */
export function MachineRunPage({ id }: { id: string }) {
  const run = useMachineRun(id);
  const saying = useMachineNews(id);
  useTitle(run.data?.run.machine ?? "Machine");
  if (run.isPending) return <Skeleton rows={12} />;
  if (run.isError) {
    if (run.error instanceof ApiError && run.error.status === 404) return <Missing what="run" />;
    return <Failed error={run.error} doing="read the run" retry={() => void run.refetch()} />;
  }
  return (
    <div className="machine">
      <Head run={run.data.run} />
      <MachineNeeds run={run.data.run} />
      <Body details={run.data} saying={saying} />
    </div>
  );
}

function Head({ run }: { run: Run }) {
  const command = useMachineCommand(run.runId);
  const tell = useNotice();
  const { usage } = run;
  const open = run.status !== "completed" && run.status !== "cancelled";
  const cancel = () => command.mutate({ do: "cancel", body: {} }, { onError: (e) => tell({ text: `Could not cancel: ${e.message}`, failed: true }) });
  return (
    <header className="head">
      <div>
        <h1>{run.machine}</h1>
        <p className="quiet">
          <Status word={run.status} />{run.state === undefined || run.status === "completed" ? null : ` in ${run.state}`}{" · "}
          <Link href={`/machines/${encodeURIComponent(run.machine)}`}>Definition</Link>{" · "}
          {usage.calls === 1 ? "1 call" : `${usage.calls} calls`} of models: {usage.inputTokens.toLocaleString()} tokens in, {usage.outputTokens.toLocaleString()} out
          {run.cost > 0 ? `, cost ${run.cost.toFixed(4)}` : ""} · changed <When at={run.updatedAt} />
        </p>
        <p className="mono quiet">{run.runId}{run.parent === undefined ? null : <> · from <Link href={`/machine-runs/${run.parent}`}>{run.parent}</Link></>}</p>
      </div>
      {open ? (
        <Ask trigger={<button type="button" className="button" disabled={command.isPending}>Cancel the run</button>} title="Cancel this run" verb="Cancel the run" onAgree={cancel}>
          <p>It ends permanently. Its record stays, and you can fork it.</p>
        </Ask>
      ) : null}
    </header>
  );
}

function Body({ details, saying }: { details: Schemas["MachineRunDetails"]; saying: Saying | undefined }) {
  const { run, definition, ways, conversations, data } = details;
  const model = useMemo(() => machineGraph(definition, ways), [definition, ways]);
  const states = useMemo(() => machineStates(run), [run]);
  return (
    <div className="machine-body">
      <Graph model={model} states={states} label={`States of ${run.machine}`} />
      <Tabs label="About the run" tabs={[
        { id: "talk", name: "Conversations", body: <Conversations all={conversations} saying={saying} output={run.output} /> },
        { id: "events", name: "Events", count: run.seq, body: <MachineEvents id={run.runId} /> },
        { id: "data", name: "Data", body: <pre>{JSON.stringify(data, null, 2)}</pre> },
      ]} />
    </div>
  );
}
