import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import type { Schemas } from "../../api/client";
import { checkHookText, useSaveHookModule } from "../../api/hooks";
import { useNotice } from "../../parts/Notice";
import { Failed } from "../../parts/States";
import { DiagnosticList } from "../workflows/DiagnosticList";
import { giveImported } from "./imported";
import "../../parts/ask.css";

/** Reads a graph or a module from a file or a text: in JSON or YAML, also as MCP Router writes it. */
export function ImportHook({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [, go] = useLocation();
  const [text, setText] = useState("");
  const [verdict, setVerdict] = useState<Schemas["HookVerdict"] | undefined>();
  const [error, setError] = useState<unknown>();
  const save = useSaveHookModule();
  const tell = useNotice();
  useEffect(() => dialog.current?.showModal(), []);
  const read = async () => {
    try {
      const found = await checkHookText(text);
      setError(undefined);
      setVerdict(found);
      if (found.graph !== undefined && giveImported(found.graph)) go("/new-hook");
      else if (found.module !== undefined) save.mutate({ id: found.module.id, source: "user", script: found.module.script }, { onSuccess: ({ module }) => { tell({ text: `The module ${module.id} is saved to ${module.source}.` }); dialog.current?.close(); } });
    } catch (e) {
      setError(e);
    }
  };
  return (
    <dialog ref={dialog} className="ask save" aria-labelledby="import-title" onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); void read(); }}>
        <h2 id="import-title">Import a hook graph or a module</h2>
        <p className="quiet">JSON or YAML, also an export of MCP Router. A graph opens in the editor; nothing runs before you save and enable it.</p>
        <input type="file" aria-label="File" accept=".json,.yaml,.yml" onChange={(e) => { void e.target.files?.[0]?.text().then(setText); }} />
        <label className="field"><span>Text</span><textarea rows={10} className="mono" value={text} spellCheck={false} onChange={(e) => setText(e.target.value)} /></label>
        {verdict === undefined || verdict.graph !== undefined || verdict.module !== undefined ? null : <DiagnosticList list={verdict.diagnostics} />}
        {error === undefined ? null : <Failed error={error} doing="read it" />}
        {save.isError ? <Failed error={save.error} doing="save the module" /> : null}
        <div className="ask-buttons">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" className="button button-main" disabled={text.trim() === ""}>Import</button>
        </div>
      </form>
    </dialog>
  );
}
