import { useEffect, useRef, useState } from "react";
import { ApiError, type Schemas } from "../../api/client";
import { useSaveWorkflow } from "../../api/commands";
import { useCatalog, useMay } from "../../api/reads";
import { Failed, Skeleton } from "../../parts/States";
import { Difference } from "./Difference";
import "../../parts/ask.css";

interface Props {
  id: string;
  text: string;
  format: string;
  /** What is served now; undefined for a new definition. */
  served: Schemas["WorkflowText"] | undefined;
  /** The version that the change began from. */
  base: string;
  onSaved: (saved: Schemas["WorkflowText"]) => void;
  onConflict: () => void;
  onClose: () => void;
}

/** Shows what a save changes, and where it goes. */
export function SaveDialog({ id, text, format, served, base, onSaved, onConflict, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const catalog = useCatalog();
  const may = useMay("define");
  const save = useSaveWorkflow();
  const places = catalog.data?.sources.filter((s) => s.writable) ?? [];
  const own = served?.writable === true ? served.workflow.source : undefined;
  const [picked, setPicked] = useState<string | undefined>();
  const source = picked ?? own ?? places[0]?.name ?? "";
  const place = places.find((s) => s.name === source);
  useEffect(() => dialog.current?.showModal(), []);
  const conflict = save.error instanceof ApiError && save.error.status === 409;
  const send = () => save.mutate({ id, source, text, base: source === own ? base : "" }, { onSuccess: onSaved });
  return (
    <dialog ref={dialog} className="ask save" aria-labelledby="save-title" onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); send(); }}>
        <h2 id="save-title">Save {id}</h2>
        {catalog.isPending ? <Skeleton rows={2} /> : (
          <label className="field">
            <span>Where</span>
            <select value={source} onChange={(e) => setPicked(e.target.value)}>
              {places.map((s) => <option key={s.name} value={s.name}>{s.name}: {s.location}</option>)}
            </select>
          </label>
        )}
        {served !== undefined && source !== own ? <p className="quiet">A new file. {placeWords(place, served)}</p> : null}
        <Difference before={served?.text ?? ""} after={text} format={format} />
        {save.isError ? <Failed error={save.error} doing="save it" /> : null}
        {may ? null : <p className="quiet">Only an admin can save. The local user logs in with <code>guideway open</code>.</p>}
        <div className="ask-buttons">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>Cancel</button>
          {conflict && source === own ? <button type="button" className="button" onClick={onConflict}>Show the current version</button> : null}
          <button type="submit" className="button button-main" disabled={save.isPending || source === "" || !may || text === served?.text}>Save to {source}</button>
        </div>
      </form>
    </dialog>
  );
}

function placeWords(place: Schemas["SourceStatus"] | undefined, served: Schemas["WorkflowText"]): string {
  if (place === undefined) return "";
  return `It is served in place of that of ${served.workflow.source} if ${place.name} has the higher precedence.`;
}
