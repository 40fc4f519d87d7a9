import { useMemo } from "react";
import { Link, useLocation } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useMachineCommand, useMachineEvents, useMachineNews, useMachineRun, type Saying } from "../../api/machines";
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
          {usage.calls} calls, {usage.inputTokens.toLocaleString()} + {usage.outputTokens.toLocaleString()} tokens
          {run.cost > 0 ? `, cost ${run.cost.toFixed(4)}` : ""} · changed <When at={run.updatedAt} />
        </p>
        <p className="mono quiet">{run.runId}{run.parent === undefined ? null : <> · from <Link href={`/machine-runs/${run.parent}`}>{run.parent}</Link></>}</p>
      </div>
      {open ? (
        <Ask trigger={<button type="button" className="button" disabled={command.isPending}>Cancel the run</button>} title="Cancel this run" verb="Cancel the run" onAgree={cancel}>
          <p>It ends for good. What was said and done stays to be read, and it can be forked.</p>
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
        { id: "events", name: "Events", count: run.seq, body: <Events id={run.runId} /> },
        { id: "data", name: "Data", body: <pre>{JSON.stringify(data, null, 2)}</pre> },
      ]} />
    </div>
  );
}

interface Fact {
  state?: string;
  agent?: string;
  function?: string;
  next?: string;
  unknown?: boolean;
  tool?: { name: string; arguments: string };
  result?: { content: string };
  response?: { message: { content: string | null } };
  fault?: { message: string; file?: string; line?: number };
  pause?: { message: string };
}

/** The events of a run; a new run can go its own way from each. */
function Events({ id }: { id: string }) {
  const events = useMachineEvents(id);
  const command = useMachineCommand(id);
  const [, go] = useLocation();
  const tell = useNotice();
  const fork = (seq: number) => command.mutate({ do: "fork", body: { seq } }, {
    onSuccess: (made) => {
      go(`/machine-runs/${made.run.runId}`);
      tell({ text: `Forked at event ${seq}. This is the new run.` });
    },
    onError: (e) => tell({ text: `Could not fork: ${e.message}`, failed: true }),
  });
  if (events.isPending) return <Skeleton rows={8} />;
  if (events.isError) return <Failed error={events.error} doing="read the events" retry={() => void events.refetch()} />;
  return (
    <ol className="machine-events">
      {events.data.events.filter((e) => !e.kind.startsWith("lease_")).map((e) => (
        <li key={e.seq} value={e.seq}>
          <span className="mono quiet machine-seq">{e.seq}</span> <span className="mono">{e.kind}</span> <span className="machine-said">{words(e.data as Fact | undefined)}</span>
          {e.seq > 1 ? <button type="button" className="button button-small" disabled={command.isPending} onClick={() => fork(e.seq)}>Fork from here</button> : null}
        </li>
      ))}
    </ol>
  );
}

function words(f: Fact | undefined): string {
  if (f === undefined) return "";
  return [
    f.state, f.agent, f.function, f.tool === undefined ? undefined : `${f.tool.name} ${f.tool.arguments}`, f.next === undefined ? undefined : `to ${f.next}`,
    f.response?.message.content ?? undefined, f.result?.content, f.fault?.message, f.pause?.message, f.unknown === true ? "outcome unknown" : undefined,
  ].filter((t) => t !== undefined && t !== "").join(" · ");
}
