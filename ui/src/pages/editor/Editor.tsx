import type { EditorView } from "@codemirror/view";
import { EditorView as View } from "@codemirror/view";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useSchema } from "../../api/reads";
import { Graph } from "../../graph/Graph";
import { graphOf } from "../../graph/model";
import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";
import { Empty } from "../../parts/States";
import { Tabs } from "../../parts/Tabs";
import { DiagnosticList } from "../workflows/DiagnosticList";
import { Code } from "./Code";
import { completion } from "./completion";
import { Difference } from "./Difference";
import { dropDraft, keepDraft, type Draft } from "./draft";
import { liveFindings } from "./findings";
import { editing, reading } from "./look";
import { SaveDialog } from "./SaveDialog";

interface Props {
  /** What the draft is kept as. */
  draftOf: string;
  /** What is served now; undefined for a new definition. */
  served?: Schemas["WorkflowText"];
  /** Where the change goes on: the draft, or the text as it is served. */
  began: Draft;
  /** The text to go back to. */
  original: string;
  onSaved: (saved: Schemas["WorkflowText"]) => void;
  onReread?: () => void;
}

/** An editor with findings at their lines, the graph, and an explicit save. */
export function Editor({ draftOf, served, began, original, onSaved, onReread }: Props) {
  const [start, setStart] = useState({ ...began, time: 0 });
  const [base, setBase] = useState(began.base);
  const [looked, setLooked] = useState(original); // what was served when this began: a text that is the same has no changes
  const [text, setText] = useState(began.text);
  const [verdict, setVerdict] = useState<Schemas["Verdict"] | undefined>();
  const [trouble, setTrouble] = useState<string | undefined>();
  const [drawn, setDrawn] = useState<unknown>();
  const [saving, setSaving] = useState(false);
  const view = useRef<EditorView | undefined>(undefined);
  const tell = useNotice();
  const format = start.text.trimStart().startsWith("{") ? "json" : "yaml";
  const schema = useSchema(verdict?.dialect ?? served?.workflow.dialect ?? "steps");
  const told = useCallback((v: Schemas["Verdict"] | Error) => {
    setTrouble(v instanceof Error ? v.message : undefined);
    if (v instanceof Error) return;
    setVerdict(v);
    if (v.definition !== undefined) setDrawn(v.definition);
  }, []);
  const extensions = useMemo(() => [
    reading(format), editing, liveFindings(told), completion(schema.data, format),
    View.updateListener.of((u) => {
      if (!u.docChanged) return;
      const now = u.state.doc.toString();
      setText(now);
      keepDraft(draftOf, { text: now, base });
    }),
  ], [format, told, schema.data, draftOf, base]);
  const ready = useCallback((v: EditorView) => { view.current = v; }, []);
  const model = useMemo(() => graphOf(drawn), [drawn]);
  const changed = text !== original;
  const newer = served !== undefined && base !== served.base;
  const adopts = newer && (text === looked || text === original);
  const behind = newer && !adopts && !saving;
  const id = verdict?.id ?? served?.workflow.id;
  const begin = (draft: Draft) => { setStart(({ time }) => ({ ...draft, time: time + 1 })); setText(draft.text); setBase(draft.base); setLooked(original); };
  useEffect(() => {
    if (!adopts || saving) return;
    if (text !== original) tell({ text: "A new version was saved. You see it now." });
    begin({ text: original, base: served.base });
  });
  const discard = () => { dropDraft(draftOf); begin({ text: original, base: served?.base ?? "" }); };
  const cannot = cannotSave(verdict, served?.workflow.id);
  const found = verdict?.diagnostics ?? [];
  const goTo = (line: number) => {
    const v = view.current;
    if (v === undefined) return;
    const at = v.state.doc.line(Math.min(line, v.state.doc.lines)).from;
    v.dispatch({ selection: { anchor: at }, effects: View.scrollIntoView(at, { y: "center" }) });
    v.focus();
  };
  return (
    <>
      <header className="head">
        <div>
          <h1>{served === undefined ? "New workflow" : `Edit ${served.workflow.name}`}</h1>
          <p className="quiet">{changed ? "The draft is kept in this browser until you save it." : "No changes yet."}{served === undefined ? null : <> <Link href={`/workflows/${encodeURIComponent(served.workflow.id)}`}>Back to the workflow</Link></>}</p>
        </div>
        <div className="actions">
          {cannot === undefined ? null : <span className="quiet">{cannot}</span>}
          <Ask trigger={<button type="button" className="button" disabled={!changed}>Discard the draft</button>} title="Discard the draft?" verb="Discard it" onAgree={discard}><p>Your changes are lost.</p></Ask>
          <button type="button" className="button button-main" disabled={!changed || cannot !== undefined || id === undefined} onClick={() => setSaving(true)}>Save…</button>
        </div>
      </header>
      {behind ? (
        <div className="card conflict" role="alert">
          <h2>This workflow has changed since you began your draft</h2>
          <Difference before={served.text} after={text} format={format} />
          <div className="actions">
            <button type="button" className="button" onClick={() => { setBase(served.base); keepDraft(draftOf, { text, base: served.base }); }}>Keep my version</button>
            <button type="button" className="button" onClick={discard}>Use the saved version</button>
          </div>
        </div>
      ) : null}
      <div className="editor-columns">
        <Code key={start.time} label="Definition" text={start.text} extensions={extensions} onReady={ready} />
        <Tabs label="About the draft" tabs={[
          { id: "findings", name: "Diagnostics", count: found.length, body: trouble !== undefined ? <p role="alert">The text could not be checked: {trouble}</p> : found.length === 0 ? <Empty title={verdict === undefined ? "Not checked yet" : "No diagnostics"}>Diagnostics of the text appear here and at their line.</Empty> : <DiagnosticList list={found} onLine={goTo} /> },
          { id: "graph", name: "Graph", body: model === undefined ? <Empty title="No graph yet">It is drawn as soon as the text loads.</Empty> : <div className="editor-graph"><Graph model={model} label="The draft as a graph" /></div> },
        ]} />
      </div>
      {saving && id !== undefined ? (
        <SaveDialog id={id} text={text} format={format} served={served} base={base} onClose={() => setSaving(false)}
          onConflict={() => { setSaving(false); onReread?.(); }}
          onSaved={(s) => { dropDraft(draftOf); tell({ text: `Saved to ${s.workflow.source}.` }); onSaved(s); }} />
      ) : null}
    </>
  );
}

/** Why a text cannot be saved; undefined where it can. */
function cannotSave(verdict: Schemas["Verdict"] | undefined, id: string | undefined): string | undefined {
  if (verdict === undefined) return "Checking…";
  const errors = verdict.diagnostics.filter((d) => d.severity === "error").length;
  if (errors > 0) return errors === 1 ? "1 error to fix" : `${errors} errors to fix`;
  if (id !== undefined && verdict.id !== id) return `The id was ${id}: a new id is a new workflow`;
  return undefined;
}
