import { useMemo, useState } from "react";
import { Link } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useWorkflow, useWorkflowText } from "../../api/reads";
import { Graph } from "../../graph/Graph";
import { graphOf } from "../../graph/model";
import { Empty, Failed, Missing, Skeleton } from "../../parts/States";
import { Tabs } from "../../parts/Tabs";
import { useTitle } from "../../parts/title";
import { AboutStep } from "./AboutStep";
import { DiagnosticList } from "./DiagnosticList";
import { Source } from "./Source";
import { StartRun } from "./StartRun";
import "./workflows.css";

/** A workflow: its graph beside its source, and what is to be said of it. */
export function WorkflowPage({ id }: { id: string }) {
  const workflow = useWorkflow(id);
  useTitle(workflow.data?.workflow.name ?? id);
  if (workflow.isPending) return <Skeleton rows={12} />;
  if (workflow.isError) {
    if (workflow.error instanceof ApiError && workflow.error.status === 404) return <Missing what="workflow" />;
    return <Failed error={workflow.error} doing="read the workflow" retry={() => void workflow.refetch()} />;
  }
  const { workflow: w, overrides } = workflow.data;
  const at = `/workflows/${encodeURIComponent(id)}`;
  return (
    <>
      <header className="head">
        <div>
          <h1>{w.name}</h1>
          <p className="prose about-workflow" title={w.description}>{w.description}</p>
          <p className="quiet">
            <span className="mono">{w.id}</span> {w.version} · {w.dialect} · from <span title={w.path}>{w.source}</span>
            {overrides === undefined || overrides.length === 0 ? "" : ` · takes the place of that of ${overrides.map((o) => o.source.name).join(", ")}`}
          </p>
          {w.stale === true ? <p className="stale">The file no longer loads. This is the last version that did.</p> : null}
        </div>
        <div className="actions">
          <Link href={`${at}/try`} className="button">Try it</Link>
          <Link href={`${at}/edit`} className="button">Edit</Link>
          <StartRun workflowId={id} name={w.name} />
        </div>
      </header>
      <Body id={id} definition={workflow.data.definition} />
    </>
  );
}

function Body({ id, definition }: { id: string; definition: Schemas["Definition"] }) {
  const text = useWorkflowText(id);
  const model = useMemo(() => graphOf(definition), [definition]);
  const [chosen, setChosen] = useState<string | undefined>();
  const [line, setLine] = useState<number | undefined>();
  const found = text.data?.diagnostics ?? [];
  const source = text.isPending ? <Skeleton rows={12} /> :
    text.isError ? <Failed error={text.error} doing="read the source" retry={() => void text.refetch()} /> :
    <Source text={text.data.text} diagnostics={found} line={line} />;
  return (
    <div className="workflow-columns">
      {model === undefined ? <Empty title="No graph">This definition cannot be drawn.</Empty> : <Graph model={model} chosen={chosen} onChoose={setChosen} label="The workflow as a graph" />}
      <Tabs label="About the workflow" tabs={[
        { id: "source", name: "Source", body: source },
        { id: "step", name: "Step", body: <AboutStep definition={definition} chosen={chosen} /> },
        { id: "findings", name: "Diagnostics", count: found.length, body: found.length === 0 ? <Empty title="No diagnostics">The definition loads, and the linter reports nothing.</Empty> : <DiagnosticList list={found} onLine={setLine} /> },
      ]} />
    </div>
  );
}
