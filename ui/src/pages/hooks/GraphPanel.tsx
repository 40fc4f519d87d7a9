import { useState } from "react";
import { isObject, list, text, type Json } from "../../graph/json";
import { setMembers, type HookDocument } from "./document";
import { readJSON } from "./written";

interface Props {
  doc: HookDocument;
  isNew: boolean;
  onEdit: (doc: HookDocument, of?: string) => void;
}

const methods: Record<string, string> = { "tools/call": "tool calls", "tools/list": "tool lists", "resources/read": "reads of resources", "prompts/get": "prompts" };

/** What the graph is, which requests it stands around, and its variables. */
export function GraphPanel({ doc, isNew, onEdit }: Props) {
  const set = (members: Json, of?: string) => onEdit(setMembers(doc, members), of);
  const also = Array.isArray(doc["also"]) ? doc["also"].map(text) : [];
  return (
    <div className="panel">
      <div className="panel-row">
        <label className="field"><span>Name</span><input type="text" value={doc.name} onChange={(e) => set({ name: e.target.value }, "name")} /></label>
        <label className="field"><span>Id</span><input type="text" value={doc.id} disabled={!isNew} spellCheck={false} onChange={(e) => set({ id: e.target.value }, "id")} /></label>
      </div>
      <label className="field"><span>Description</span><textarea rows={2} value={text(doc["description"])} onChange={(e) => set({ description: e.target.value === "" ? undefined : e.target.value }, "description")} /></label>
      <div className="panel-row">
        <label className="field"><span>Wraps</span>
          <select value={doc.workflowType} onChange={(e) => { const rest = also.filter((m) => m !== e.target.value); set({ workflowType: e.target.value, also: rest.length === 0 ? undefined : rest }); }}>{Object.entries(methods).map(([m, name]) => <option key={m} value={m}>{name} ({m})</option>)}</select></label>
        <label className="field"><span>Order in the chain</span>
          <input type="number" min={0} max={100} placeholder="50" value={typeof doc["order"] === "number" ? doc["order"] : ""} onChange={(e) => set({ order: e.target.value === "" ? undefined : Number(e.target.value) }, "order")} /></label>
        <label className="check"><input type="checkbox" checked={doc["template"] === true} onChange={(e) => set({ template: e.target.checked ? true : undefined })} /> Template: copied, never enabled</label>
      </div>
      <div className="panel-row" role="group" aria-label="Also wraps">
        {Object.entries(methods).filter(([m]) => m !== doc.workflowType).map(([m, name]) => <label key={m} className="check"><input type="checkbox" checked={also.includes(m)} onChange={(e) => { const next = e.target.checked ? [...also, m] : also.filter((each) => each !== m); set({ also: next.length === 0 ? undefined : next }); }} /> also {name}</label>)}
      </div>
      <Bindings doc={doc} set={set} />
      <Variables doc={doc} set={set} />
    </div>
  );
}

type Set = (members: Json, of?: string) => void;

function Bindings({ doc, set }: { doc: HookDocument; set: Set }) {
  const bindings = list(doc["bindings"]);
  const put = (next: Json[], of?: string) => set({ bindings: next.length === 0 ? undefined : next }, of);
  const edit = (i: number, member: string, value: string) =>
    put(bindings.map((b, j) => (j === i ? Object.fromEntries(Object.entries({ ...b, [member]: value }).filter(([, v]) => v !== "")) : b)), `binding ${i} ${member}`);
  return (
    <fieldset className="rows">
      <legend>Servers and tools</legend>
      <p className="quiet">{bindings.length === 0 ? "All of them. " : ""}In patterns, * matches any text and ? one character; an empty pattern matches everything.</p>
      {bindings.map((b, i) => (
        <div key={i} className="rows-row">
          <input type="text" aria-label={`Server of binding ${i + 1}`} placeholder="any server" value={text(b["upstream"])} spellCheck={false} onChange={(e) => edit(i, "upstream", e.target.value)} />
          <input type="text" aria-label={`Tool of binding ${i + 1}`} placeholder={doc.workflowType === "tools/call" ? "any tool" : "no tool"} disabled={doc.workflowType !== "tools/call"} value={text(b["tool"])} spellCheck={false} onChange={(e) => edit(i, "tool", e.target.value)} />
          <button type="button" className="button button-small" aria-label={`Remove binding ${i + 1}`} onClick={() => put(bindings.filter((_, j) => j !== i))}>Remove</button>
        </div>
      ))}
      <button type="button" className="button button-small" onClick={() => put([...bindings, { upstream: "*" }])}>Add a binding</button>
    </fieldset>
  );
}

function Variables({ doc, set }: { doc: HookDocument; set: Set }) {
  const variables = isObject(doc["variables"]) ? doc["variables"] : {};
  const [name, setName] = useState("");
  const put = (next: Json, of?: string) => set({ variables: Object.keys(next).length === 0 ? undefined : next }, of);
  const good = /^[A-Za-z_]\w*$/.test(name) && !(name in variables);
  return (
    <fieldset className="rows">
      <legend>Variables</legend>
      <p className="quiet">The hooks of one request share them. Initial values, in JSON.</p>
      {Object.entries(variables).map(([key, value]) => (
        <div key={key} className="rows-row">
          <code>{key}</code>
          <VariableValue name={key} value={value} onChange={(v) => put({ ...variables, [key]: v }, `variable ${key}`)} />
          <button type="button" className="button button-small" aria-label={`Remove the variable ${key}`} onClick={() => put(Object.fromEntries(Object.entries(variables).filter(([k]) => k !== key)))}>Remove</button>
        </div>
      ))}
      <div className="rows-row">
        <input type="text" aria-label="Name of a new variable" placeholder="name" value={name} spellCheck={false} onChange={(e) => setName(e.target.value)} />
        <button type="button" className="button button-small" disabled={!good} onClick={() => { put({ ...variables, [name]: "" }); setName(""); }}>Add the variable</button>
      </div>
    </fieldset>
  );
}

function VariableValue({ name, value, onChange }: { name: string; value: unknown; onChange: (value: unknown) => void }) {
  const [written, setWritten] = useState<string | undefined>();
  const said = JSON.stringify(value);
  const read = written === undefined ? undefined : readJSON(written);
  const bad = read !== undefined && "problem" in read ? read.problem : undefined;
  return (
    <div className="rows-value">
      <input type="text" className="mono" aria-label={`Value of ${name}, in JSON`} aria-invalid={bad !== undefined} value={written ?? said} spellCheck={false}
        onChange={(e) => { setWritten(e.target.value); const r = readJSON(e.target.value); if ("value" in r) onChange(r.value); }} onBlur={() => { if (bad === undefined) setWritten(undefined); }} />
      {bad === undefined ? null : <span className="field-problem" role="alert">{bad}</span>}
    </div>
  );
}
