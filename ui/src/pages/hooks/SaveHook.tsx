import { useEffect, useRef, useState } from "react";
import { ApiError, type Schemas } from "../../api/client";
import { useSaveHook } from "../../api/hooks";
import { useCatalog, useMay } from "../../api/reads";
import { Failed } from "../../parts/States";
import { Difference } from "../editor/Difference";
import { textOf, type HookDocument } from "./document";
import "../../parts/ask.css";

interface Props {
  doc: HookDocument;
  /** What is served now; undefined for a new graph. */
  served: Schemas["HookAnswer"] | undefined;
  /** The version that the change began from. */
  base: string;
  onSaved: (saved: Schemas["HookAnswer"]) => void;
  onConflict: () => void;
  onClose: () => void;
}

/** Shows what a save changes, and where it goes. */
export function SaveHook({ doc, served, base, onSaved, onConflict, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const catalog = useCatalog();
  const may = useMay("define");
  const save = useSaveHook();
  const places = catalog.data?.sources.filter((s) => s.writable) ?? [];
  const own = served?.hook.writable === true ? served.hook.source : undefined;
  const [picked, setPicked] = useState<string | undefined>();
  const source = picked ?? own ?? places[0]?.name ?? "";
  useEffect(() => dialog.current?.showModal(), []);
  const conflict = save.error instanceof ApiError && save.error.status === 409 && source === own;
  const send = () => save.mutate({ id: doc.id, source, base: source === own ? base : "", graph: doc }, { onSuccess: onSaved });
  return (
    <dialog ref={dialog} className="ask save" aria-labelledby="save-title" onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); send(); }}>
        <h2 id="save-title">Save {doc.id}</h2>
        <label className="field">
          <span>Where</span>
          <select value={source} onChange={(e) => setPicked(e.target.value)}>{places.map((s) => <option key={s.name} value={s.name}>{s.name}: {s.location}</option>)}</select>
        </label>
        <p className="quiet">{consequence(served, source === own)}</p>
        <Difference before={served?.graph === undefined ? "" : textOf(served.graph)} after={textOf(doc)} format="json" />
        {save.isError ? <Failed error={save.error} doing="save it" /> : null}
        {may ? null : <p className="quiet">Only an admin can save. The local user logs in with <code>guideway open</code>.</p>}
        <div className="ask-buttons">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>Cancel</button>
          {conflict ? <button type="button" className="button" onClick={onConflict}>Show the current version</button> : null}
          <button type="submit" className="button button-main" disabled={save.isPending || source === "" || !may}>Save to {source}</button>
        </div>
      </form>
    </dialog>
  );
}

/** What saving means for the calls that go on meanwhile. */
function consequence(served: Schemas["HookAnswer"] | undefined, same: boolean): string {
  if (served === undefined) return "A new file. The graph is off until you enable it.";
  if (!same) return `A new file in addition to that of ${served.hook.source}.`;
  if (!served.hook.enabled) return "The graph is off, and stays off.";
  return served.hook.own ? "The graph is active: the saved version takes effect immediately." : "The graph is enabled: after this change, the requests that it wraps are refused until you enable it again.";
}
