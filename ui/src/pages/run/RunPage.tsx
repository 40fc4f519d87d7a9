import { useMemo, useState } from "react";
import { Link } from "wouter";
import { useRun, useRunDefinition, useRunEvents } from "../../api/reads";
import { ApiError, type Schemas } from "../../api/client";
import { graphOf } from "../../graph/model";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { Tabs } from "../../parts/Tabs";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import { Checkpoints } from "./Checkpoints";
import { hasOutput } from "./events";
import { checksByEvent } from "./evidence";
import { Outputs } from "./Outputs";
import { Proved } from "./Proved";
import { RunActions } from "./RunActions";
import { RunContext } from "./RunContext";
import { RunGraph } from "./RunGraph";
import { RunPosition } from "./RunPosition";
import { Timeline } from "./Timeline";
import "./run.css";

/** One run: what it waits for, where it is, what has happened. */
export function RunPage({ id }: { id: string }) {
  const run = useRun(id);
  useTitle(run.data === undefined ? "Run" : nameOf(run.data.run));
  if (run.isPending) return <Skeleton rows={12} />;
  if (run.isError) {
    if (run.error instanceof ApiError && run.error.status === 404) return <Missing what="run" />;
    return <Failed error={run.error} doing="read the run" retry={() => void run.refetch()} />;
  }
  const { run: record, position } = run.data;
  return (
    <div className="run">
      <header className="head run-head">
        <div>
          <h1>{nameOf(record)}</h1>
          <p className="quiet">
            <Status word={record.status} /> · <Link href={`/workflows/${encodeURIComponent(record.workflowId)}`}>{record.workflowName}</Link> {record.version}
            {" · "}<Proved run={record} /> · changed <When at={record.updatedAt} />
            {run.data.unwatched === undefined ? null : <> · <span title={`No hook of the client has reported for this run. Install the hooks with: guideway install ${run.data.unwatched} --hooks`}>unwatched</span></>}
          </p>
          <p className="mono quiet">{record.runId}{record.parent === undefined ? null : <> · forked from <Link href={`/runs/${record.parent}`}>{record.parent}</Link>{record.parentSeq === undefined ? "" : ` at event ${record.parentSeq}`}</>}</p>
        </div>
        <RunActions run={record} />
      </header>
      <RunPosition details={run.data} name={nameOf(record)} />
      <RunBody id={id} position={position} />
    </div>
  );
}

function nameOf(run: Schemas["Run"]): string {
  return run.goal === undefined || run.goal === "" ? run.workflowName : run.goal;
}

const noEvents: Schemas["Event"][] = [];

/** The graph beside what has happened. A node that is chosen narrows the events. */
function RunBody({ id, position }: { id: string; position: Schemas["Position"] }) {
  const events = useRunEvents(id);
  const definition = useRunDefinition(id);
  const model = useMemo(() => graphOf(definition.data), [definition.data]);
  const [chosen, setChosen] = useState<string | undefined>();
  const titles = useMemo(() => new Map(model?.nodes.map((n) => [n.ref ?? n.id, n.title])), [model]);
  const list = events.data ?? noEvents;
  const checks = useMemo(() => checksByEvent(list), [list]);
  if (events.isError) return <Failed error={events.error} doing="read the events" retry={() => void events.refetch()} />;
  const done = list.filter(hasOutput).length;
  const loading = events.isPending ? <Skeleton /> : undefined;
  return (
    <div className="run-columns">
      <RunGraph definition={definition} model={model} position={position} events={list} chosen={chosen} onChoose={setChosen} />
      <Tabs
        label="About the run"
        tabs={[
          { id: "events", name: "Events", count: list.length, body: loading ?? <Timeline runId={id} events={list} titles={titles} checks={checks} about={chosen} onAll={() => setChosen(undefined)} /> },
          { id: "outputs", name: "Outputs", count: done, body: loading ?? <Outputs events={list} titles={titles} checks={checks} /> },
          { id: "context", name: "Context", body: <RunContext runId={id} /> },
          { id: "checkpoints", name: "Checkpoints", body: <Checkpoints runId={id} /> },
        ]}
      />
    </div>
  );
}
