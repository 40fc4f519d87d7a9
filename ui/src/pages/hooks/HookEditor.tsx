import { useCallback, useEffect, useMemo, useState, type KeyboardEvent } from "react";
import { Link, useSearchParams } from "wouter";
import type { Schemas } from "../../api/client";
import { exportHook, useHookStats, useHooks } from "../../api/hooks";
import { Ask } from "../../parts/Ask";
import { Export } from "../../parts/Export";
import { useNotice } from "../../parts/Notice";
import { Empty } from "../../parts/States";
import { Tabs } from "../../parts/Tabs";
import { Difference } from "../editor/Difference";
import { dropDraft, keepDraft } from "../editor/draft";
import { DiagnosticList } from "../workflows/DiagnosticList";
import { Activity } from "./Activity";
import { Canvas, refusal, type Chosen } from "./Canvas";
import { addNode, connect, freshNode, insertNode, textOf, type HookDocument, type Kind } from "./document";
import { GraphPanel } from "./GraphPanel";
import { arranged, freePlace } from "./layout";
import { ListPanel } from "./ListPanel";
import { badEdges, marksOf } from "./marks";
import { NodePanel } from "./NodePanel";
import { Palette } from "./Palette";
import { SaveHook } from "./SaveHook";
import { sampleFor, TestPanel } from "./TestPanel";
import { useEditing, useVerdict } from "./useEditing";
import { VersionsPanel } from "./VersionsPanel";
import { whyNot } from "./rules";
import "./hooks.css";

/** A draft, and the version that it began from. */
export interface Begun {
  doc: HookDocument;
  base: string;
}

interface Props {
  /** What the draft is kept as. */
  draftOf: string;
  /** What is served now; undefined for a new graph. */
  served?: Schemas["HookAnswer"];
  began: Begun;
  /** What to go back to. */
  original: HookDocument;
  /** Goes on with what was saved, or restored: the draft is of the past. */
  onSaved: (saved: Schemas["HookAnswer"], said?: string) => void;
  onReread?: () => void;
}

/** The editor of hook graphs: the canvas, what is chosen, a trial, and the versions. */
export function HookEditor({ draftOf, served, began, original, onSaved, onReread }: Props) {
  const editing = useEditing(began.doc);
  const { doc, edit } = editing;
  const [base, setBase] = useState(began.base);
  const [looked, setLooked] = useState(() => textOf(original)); // what was served when this began
  const [search, setSearch] = useSearchParams();
  const [chosen, setChosen] = useState<Chosen>(() => { const id = search.get("node"); return id === null ? undefined : { node: id }; });
  const [refused, setRefused] = useState<string | undefined>();
  const [dragged, setDragged] = useState<Kind | undefined>();
  const [saving, setSaving] = useState(false);
  const [sample, setSample] = useState(() => sampleFor(began.doc.workflowType));
  const [trial, setTrial] = useState<Schemas["HookTrial"] | undefined>();
  const tell = useNotice();
  const source = served?.hook.writable === true ? served.hook.source : "user";
  const { verdict, of, trouble } = useVerdict(doc, source);
  const modules = useHooks().data?.modules ?? [];
  const stats = useHookStats(served?.hook.id).data;
  const found = useMemo(() => (of === doc ? (verdict?.diagnostics ?? []) : (verdict?.diagnostics ?? []).filter((d) => d.node !== undefined)), [verdict, of, doc]);
  const marks = useMemo(() => marksOf(doc, found, trial, stats), [doc, found, trial, stats]);
  const bad = useMemo(() => (of === doc ? badEdges(found) : new Set<number>()), [found, of, doc]);
  const changed = useMemo(() => textOf(doc) !== textOf(original), [doc, original]);
  const newer = served !== undefined && served.base !== undefined && base !== served.base;
  const adopts = newer && (!changed || textOf(doc) === looked);
  const behind = newer && !adopts && !saving;
  useEffect(() => {
    if (changed) keepDraft(draftOf, { text: JSON.stringify(doc), base });
    else dropDraft(draftOf);
  }, [changed, doc, base, draftOf]);
  const change = useCallback((next: HookDocument, what?: string) => { edit(next, what); setTrial(undefined); setRefused(undefined); }, [edit]);
  const choose = useCallback((next: Chosen) => {
    setChosen(next);
    setSearch((now) => {
      if (next !== undefined) now.delete("tab");
      if (next !== undefined && "node" in next) now.set("node", next.node);
      else now.delete("node");
      return now;
    }, { replace: true });
  }, [setSearch]);
  const add = (kind: Kind) => {
    const into = chosen !== undefined && "edge" in chosen ? chosen.edge : undefined;
    const no = refusal(doc, kind, into);
    setRefused(no);
    if (no !== undefined) return;
    const [next, id] = added(doc, kind, chosen);
    change(next);
    choose({ node: id });
  };
  const keys = (e: KeyboardEvent) => {
    if (!(e.ctrlKey || e.metaKey) || isText(e)) return;
    if (e.key === "z" && !e.shiftKey) editing.undo();
    else if (e.key === "y" || (e.key.toLowerCase() === "z" && e.shiftKey)) editing.redo();
    else return;
    e.preventDefault();
  };
  const reset = () => { dropDraft(draftOf); editing.begin(original); setBase(served?.base ?? ""); setLooked(textOf(original)); setTrial(undefined); };
  useEffect(() => {
    if (!adopts || saving) return;
    if (changed) tell({ text: "A new version was saved. You see it now." });
    reset();
  });
  const errors = found.filter((d) => d.severity === "error").length;
  const cannot = trouble ?? (of !== doc ? "Checking…" : errors > 0 ? (errors === 1 ? "1 error to fix" : `${errors} errors to fix`) : undefined);
  return (
    <div onKeyDown={keys}>
      <header className="head">
        <div>
          <h1>{doc.name === "" ? doc.id : doc.name}</h1>
          <p className="quiet">{changed ? "The draft is kept in this browser until you save it." : served === undefined ? "A new graph." : <>From <span title={served.hook.path}>{served.hook.source}</span>.</>} <Link href="/hooks">All hook graphs</Link></p>
        </div>
        <div className="actions">
          {cannot === undefined || !changed ? null : <span className="quiet" role="status">{cannot}</span>}
          {served === undefined ? null : <Activity answer={served} dirty={changed} />}
          {served === undefined ? null : <Export name={`${served.hook.id}.json`} read={() => exportHook(served.hook.id)} />}
          <Ask trigger={<button type="button" className="button" disabled={!changed}>Discard the draft</button>} title="Discard the draft?" verb="Discard it" onAgree={reset}><p>Your changes are lost.</p></Ask>
          <button type="button" className="button button-main" disabled={(!changed && served?.hook.writable === true) || cannot !== undefined} onClick={() => setSaving(true)}>Save…</button>
        </div>
      </header>
      {served?.hook.why === undefined ? null : <p className="card conflict" role="alert">{served.hook.why}</p>}
      {behind ? <Conflict served={served} doc={doc} onMine={() => setBase(served.base ?? "")} onTheirs={reset} /> : null}
      <div className="hook-columns">
        <div className="hook-main">
          <div className="hook-tools">
            <Palette doc={doc} where={whereWords(chosen)} onAdd={add} onDrag={setDragged} />
            <div className="actions">
              <button type="button" className="button button-small" disabled={!editing.canUndo} onClick={editing.undo} title="Ctrl+Z">Undo</button>
              <button type="button" className="button button-small" disabled={!editing.canRedo} onClick={editing.redo} title="Ctrl+Shift+Z">Redo</button>
              <button type="button" className="button button-small" onClick={() => change(arranged(doc))}>Arrange</button>
            </div>
          </div>
          <p className="refused" role="status" data-quiet={refused === undefined || undefined}>{refused ?? `Drag a node onto the canvas or an edge, or press it to add it ${whereWords(chosen)}. Draw edges from handle to handle.`}</p>
          <Canvas doc={doc} chosen={chosen} marks={marks} badEdges={bad} dragged={dragged} onChoose={choose} onEdit={change} onRefuse={setRefused} />
        </div>
        <Tabs label="About the graph" tabs={[
          { id: "node", name: "Selected", body: <NodePanel doc={doc} chosen={chosen} found={found} modules={modules} epoch={editing.epoch} onEdit={change} onChoose={setChosen} /> },
          { id: "graph", name: "Graph", body: <GraphPanel doc={doc} isNew={served === undefined} onEdit={change} /> },
          { id: "list", name: "List", body: <ListPanel doc={doc} chosen={chosen} onChoose={setChosen} onEdit={change} /> },
          { id: "findings", name: "Diagnostics", count: found.length, body: found.length === 0 ? <Empty title="No diagnostics">Diagnostics of the graph appear here and at their node or edge.</Empty> : <DiagnosticList list={found} /> },
          { id: "test", name: "Test", body: <TestPanel doc={doc} source={source} sample={sample} trial={trial} onSample={setSample} onTrial={setTrial} onChoose={choose} /> },
          ...(served === undefined ? [] : [{ id: "versions", name: "Versions", body: <VersionsPanel id={served.hook.id} text={served.text} format={served.format} base={served.base ?? ""} source={served.hook.source} onRestored={(saved) => onSaved(saved, "The version is restored.")} /> }]),
        ]} />
      </div>
      {saving ? <SaveHook doc={doc} served={served} base={base} onClose={() => setSaving(false)} onConflict={() => { setSaving(false); onReread?.(); }} onSaved={(saved) => { setSaving(false); onSaved(saved); }} /> : null}
    </div>
  );
}

/** A node added where it makes sense: into the way that is chosen, behind the node that is, or beside. */
function added(doc: HookDocument, kind: Kind, chosen: Chosen): [HookDocument, string] {
  const node = freshNode(doc, kind, freePlace(doc));
  if (chosen !== undefined && "edge" in chosen) return [arranged(insertNode(doc, node, chosen.edge)), node.id];
  const next = addNode(doc, node);
  if (chosen === undefined || whyNot(next, { source: chosen.node, target: node.id }) !== undefined) return [next, node.id];
  return [arranged(connect(next, chosen.node, node.id)), node.id];
}

function whereWords(chosen: Chosen): string {
  if (chosen === undefined) return "below";
  return "edge" in chosen ? "into the selected edge" : "after the selected node";
}

function Conflict({ served, doc, onMine, onTheirs }: { served: Schemas["HookAnswer"]; doc: HookDocument; onMine: () => void; onTheirs: () => void }) {
  return (
    <div className="card conflict" role="alert">
      <h2>This graph has changed since you began your draft</h2>
      <Difference before={textOf(served.graph ?? {})} after={textOf(doc)} format="json" />
      <div className="actions">
        <button type="button" className="button" onClick={onMine}>Keep my version</button>
        <button type="button" className="button" onClick={onTheirs}>Use the saved version</button>
      </div>
    </div>
  );
}

function isText(e: KeyboardEvent): boolean {
  const at = e.nativeEvent.composedPath()[0];
  return at instanceof HTMLElement && (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName));
}
