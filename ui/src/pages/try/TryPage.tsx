import { useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useTrial } from "../../api/commands";
import { useWorkflow, useWorkflowText } from "../../api/reads";
import { Graph } from "../../graph/Graph";
import { graphOf } from "../../graph/model";
import { statesOf } from "../../graph/states";
import { readDraft } from "../editor/draft";
import { Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { Move } from "./Move";
import "../run/run.css";
import "../workflows/workflows.css";
import "./try.css";

/** Walks through a workflow in the agent's place, with the engine that agents get. */
export function TryPage({ id }: { id: string }) {
  const text = useWorkflowText(id);
  const workflow = useWorkflow(id);
  useTitle(`Try ${workflow.data?.workflow.name ?? id}`);
  if (text.isPending || workflow.isPending) return <Skeleton rows={12} />;
  if (text.isError) return <Failed error={text.error} doing="read the workflow" retry={() => void text.refetch()} />;
  if (workflow.isError) return <Failed error={workflow.error} doing="read the workflow" retry={() => void workflow.refetch()} />;
  const draft = readDraft(id)?.text;
  return <Walk key={draft ?? text.data.text} id={id} name={workflow.data.workflow.name} text={draft ?? text.data.text} isDraft={draft !== undefined && draft !== text.data.text} definition={workflow.data.definition} />;
}

interface WalkProps {
  id: string;
  name: string;
  text: string;
  isDraft: boolean;
  definition: Schemas["Definition"];
}

function Walk({ id, name, text, isDraft, definition }: WalkProps) {
  const [moves, setMoves] = useState<Schemas["TryMove"][]>([]);
  const [at, setAt] = useState<Schemas["Trial"] | undefined>();
  const trial = useTrial();
  const { mutate } = trial;
  useEffect(() => mutate({ text, moves: [] }, { onSuccess: setAt }), [mutate, text]);
  const walk = (next: Schemas["TryMove"][]) => mutate({ text, moves: next }, {
    onSuccess: (result) => {
      setAt(result);
      if (result.refused === undefined) setMoves(next);
    },
  });
  const model = useMemo(() => graphOf(definition), [definition]);
  const states = useMemo(() => (model === undefined || at === undefined ? undefined : statesOf(model, at.position, at.events)), [model, at]);
  return (
    <div className="run">
      <header className="head run-head">
        <div>
          <h1>Try {name}</h1>
          <p className="quiet">You act as the agent. Nothing is saved.{isDraft ? " This is your draft." : ""} <Link href={`/workflows/${encodeURIComponent(id)}`}>Back to the workflow</Link></p>
        </div>
        <div className="actions">
          <button type="button" className="button" disabled={moves.length === 0 || trial.isPending} onClick={() => walk(moves.slice(0, -1))}>Undo the last move</button>
          <button type="button" className="button" disabled={moves.length === 0 || trial.isPending} onClick={() => walk([])}>Start over</button>
        </div>
      </header>
      {trial.isError ? <Failed error={trial.error} doing="continue the trial" /> : null}
      {at === undefined ? <Skeleton rows={6} /> : (
        <div className="run-columns">
          {model === undefined || states === undefined ? <div /> : <Graph model={model} states={states} label="The workflow and where the trial is" />}
          <div className="try-side">
            <Move key={moves.length} at={at} busy={trial.isPending} onMove={(m) => walk([...moves, m])} />
            <section className="card" aria-labelledby="try-vars">
              <h2 id="try-vars">Variables <span className="quiet">{Object.keys(at.variables).length}</span></h2>
              <pre>{Object.keys(at.variables).length === 0 ? "None yet." : JSON.stringify(at.variables, null, 2)}</pre>
            </section>
          </div>
        </div>
      )}
    </div>
  );
}
