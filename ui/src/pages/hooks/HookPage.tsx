import { useState } from "react";
import { useLocation, useSearchParams } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useHook, useShowHook } from "../../api/hooks";
import { useNotice } from "../../parts/Notice";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { dropDraft, readDraft } from "../editor/draft";
import { Source } from "../workflows/Source";
import { DiagnosticList } from "../workflows/DiagnosticList";
import { Activity } from "./Activity";
import { beginning, documentOf, type HookDocument } from "./document";
import { HookEditor } from "./HookEditor";
import { takeImported } from "./imported";
import { arranged, isPlaced } from "./layout";

/** The id of drafts of what has no id yet; no graph has it. */
const newID = "(new hook)";

/** A graph to work on, or a new one. */
export function HookPage({ id }: { id?: string }) {
  return id === undefined ? <NewHook /> : <Existing id={id} />;
}

function placed(doc: HookDocument): HookDocument {
  return isPlaced(doc) ? doc : arranged(doc);
}

/** What was drafted in this browser, if it is a graph. */
function draft(id: string): { doc: HookDocument; base: string } | undefined {
  const kept = readDraft(`hook:${id}`);
  try {
    const doc = kept === undefined ? undefined : documentOf(JSON.parse(kept.text));
    return doc === undefined || kept === undefined ? undefined : { doc, base: kept.base };
  } catch {
    return undefined;
  }
}

function Existing({ id }: { id: string }) {
  const hook = useHook(id);
  const tell = useNotice();
  const show = useShowHook();
  const [time, setTime] = useState(0);
  useTitle(hook.data?.hook.name ?? id);
  if (hook.isPending) return <Skeleton rows={12} />;
  if (hook.isError) {
    if (hook.error instanceof ApiError && hook.error.status === 404) return <Missing what="hook graph" />;
    return <Failed error={hook.error} doing="read the hook graph" retry={() => void hook.refetch()} />;
  }
  const served = hook.data;
  const doc = documentOf(served.graph);
  if (doc === undefined) return <Broken answer={served} onReread={() => void hook.refetch()} />;
  const original = placed(doc);
  const again = (saved: Schemas["HookAnswer"]) => {
    dropDraft(`hook:${id}`);
    show(saved);
    setTime((t) => t + 1); // the editor begins anew, with what was saved
  };
  return (
    <HookEditor key={`${time}`} draftOf={`hook:${id}`} served={served} original={original} began={draft(id) ?? { doc: original, base: served.base ?? "" }}
      onSaved={(saved, said) => { tell({ text: said ?? `Saved to ${saved.hook.source}.` }); again(saved); }} onReread={() => void hook.refetch()} />
  );
}

/** A graph that does not load: what is wrong, at its lines. */
function Broken({ answer, onReread }: { answer: Schemas["HookAnswer"]; onReread: () => void }) {
  const [line, setLine] = useState<number | undefined>();
  return (
    <>
      <header className="head">
        <div><h1>{answer.hook.name ?? answer.hook.id}</h1><p className="quiet">It does not load: fix the file {answer.hook.path} and reload it.</p></div>
        <div className="actions"><Activity answer={answer} dirty={false} /><button type="button" className="button" onClick={onReread}>Reload</button></div>
      </header>
      <section className="section"><div className="card"><DiagnosticList list={answer.diagnostics} onLine={setLine} /></div></section>
      <div className="card"><Source text={answer.text} diagnostics={answer.diagnostics} line={line} /></div>
    </>
  );
}

/** A new graph: from the beginning, from a draft, from another graph or from a file. */
function NewHook() {
  const [, go] = useLocation();
  const [search] = useSearchParams();
  const show = useShowHook();
  const tell = useNotice();
  const from = search.get("from") ?? "";
  const template = useHook(from, from !== "");
  const [imported] = useState(takeImported);
  useTitle("New hook graph");
  if (from !== "" && template.isPending) return <Skeleton rows={12} />;
  if (from !== "" && template.isError) return <Failed error={template.error} doing="read the template" retry={() => void template.refetch()} />;
  const copied = documentOf(template.data?.graph);
  const start = imported ?? (copied === undefined ? beginning : copyOf(copied));
  const kept = imported === undefined && copied === undefined ? draft(newID) : undefined;
  const key = imported === undefined && copied === undefined ? `hook:${newID}` : `hook:${newID} ${from}`;
  const saved = (s: Schemas["HookAnswer"]) => { dropDraft(key); show(s); tell({ text: `Saved to ${s.hook.source}. It is off until you enable it.` }); go(`/hooks/${encodeURIComponent(s.hook.id)}`); };
  return <HookEditor draftOf={key} original={imported === undefined && copied === undefined ? beginning : empty} began={kept ?? { doc: placed(start), base: "" }} onSaved={saved} />;
}

/** What a copy differs from: it is worth saving as it is. */
const empty: HookDocument = { ...beginning, id: "", name: "" };

/** A graph of one's own, made of another. */
function copyOf(doc: HookDocument): HookDocument {
  const { template: _, enabled: __, createdAt: ___, updatedAt: ____, ...rest } = doc;
  return { ...(rest as HookDocument), id: `my-${doc.id}`, name: `My ${doc.name.charAt(0).toLowerCase()}${doc.name.slice(1)}` };
}
