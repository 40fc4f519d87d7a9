import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useHookModule, useSaveHookModule } from "../../api/hooks";
import { useMay } from "../../api/reads";
import { text } from "../../graph/json";
import { useNotice } from "../../parts/Notice";
import { Empty, Failed } from "../../parts/States";
import { DiagnosticList } from "../workflows/DiagnosticList";
import type { Chosen } from "./Canvas";
import { ConditionForm } from "./ConditionForm";
import { branchOf, connect, hookOf, kindNames, nodeOf, rename, setData, setHook, titleOf, without, type HookDocument, type HookNode } from "./document";
import { kindOf } from "./Piece";
import { whyNot } from "./rules";
import { ScriptEditor } from "./ScriptEditor";

interface Props {
  doc: HookDocument;
  chosen: Chosen;
  found: Schemas["Diagnostic"][];
  modules: Schemas["HookModule"][];
  /** Counts the times that the document was taken back, so that editors begin anew. */
  epoch: number;
  onEdit: (doc: HookDocument, of?: string) => void;
  onChoose: (chosen: Chosen) => void;
}

/** What is chosen, to be configured. */
export function NodePanel(props: Props) {
  const { doc, chosen, onEdit, onChoose } = props;
  if (chosen === undefined) return <Empty title="Nothing is selected">Select a node or an edge on the canvas or in the list.</Empty>;
  if ("edge" in chosen) {
    const edge = doc.edges[chosen.edge];
    if (edge === undefined) return null;
    return (
      <div className="panel">
        <h3>Edge from {nameOf(doc, edge.source)} to {nameOf(doc, edge.target)}</h3>
        {branchOf(doc, edge) === undefined ? null : <p>Taken if the condition is {branchOf(doc, edge)}.</p>}
        <p className="quiet">Press a type of node to insert it into this edge.</p>
        <button type="button" className="button" onClick={() => { onEdit(without(doc, [], [chosen.edge])); onChoose(undefined); }}>Remove the edge</button>
      </div>
    );
  }
  const node = nodeOf(doc, chosen.node);
  return node === undefined ? null : <NodeForm key={`${node.id} ${props.epoch}`} {...props} node={node} />;
}

function nameOf(doc: HookDocument, id: string): string {
  const node = nodeOf(doc, id);
  return node === undefined ? id : titleOf(node);
}

function NodeForm({ doc, node, found, modules, onEdit, onChoose }: Props & { node: HookNode }) {
  const index = doc.nodes.indexOf(node);
  const mine = found.filter((d) => d.node === node.id || d.pointer.startsWith(`/nodes/${index}/`) || d.pointer === `/nodes/${index}`);
  const [id, setID] = useState(node.id);
  const taken = id !== node.id && (id === "" || nodeOf(doc, id) !== undefined);
  return (
    <div className="panel">
      <h3>{kindOf(node)}: {titleOf(node)}</h3>
      {mine.length === 0 ? null : <DiagnosticList list={mine} />}
      <div className="panel-row">
        <label className="field"><span>Label</span><input type="text" value={text(node.data?.["label"])} onChange={(e) => onEdit(setData(doc, node.id, { label: e.target.value }), `label ${node.id}`)} /></label>
        <label className="field"><span>Id{taken ? ": taken, or empty" : ""}</span>
          <input type="text" value={id} aria-invalid={taken} spellCheck={false} onChange={(e) => setID(e.target.value)}
            onBlur={() => { if (taken || id === node.id) { setID(node.id); return; } onEdit(rename(doc, node.id, id)); onChoose({ node: id }); }} /></label>
      </div>
      {node.type === "hook" ? <HookForm doc={doc} node={node} found={mine} modules={modules} onEdit={onEdit} /> : null}
      {node.type === "condition" ? <ConditionForm label="Condition" condition={node.data?.["condition"]} onChange={(condition) => onEdit(setData(doc, node.id, { condition }), `condition ${node.id}`)} /> : null}
      {node.type === "condition" ? (
        <label className="field"><span>If it compares different types, or orders a missing value</span>
          <select value={text(node.data?.["onMismatch"])} onChange={(e) => onEdit(setData(doc, node.id, { onMismatch: e.target.value === "" ? undefined : e.target.value }))}><option value="">continue, with a warning</option><option value="record">continue, and record it</option><option value="refuse">refuse the request</option></select></label>
      ) : null}
      {node.type === "end" ? null : <Ways doc={doc} node={node} onEdit={onEdit} />}
      <button type="button" className="button" onClick={() => { onEdit(without(doc, [node.id], [])); onChoose(undefined); }}>Delete the {kindNames[node.type].toLowerCase()}</button>
    </div>
  );
}

function HookForm({ doc, node, found, modules, onEdit }: { doc: HookDocument; node: HookNode; found: Schemas["Diagnostic"][]; modules: Schemas["HookModule"][]; onEdit: Props["onEdit"] }) {
  const hook = hookOf(node);
  const module = text(hook["hookModuleId"]);
  const own = Array.isArray(doc["modules"]) ? (doc["modules"] as { id: string }[]) : [];
  const choices = [...new Set([...own.map((m) => m.id), ...modules.map((m) => m.id), ...(module === "" ? [] : [module])])];
  const timeout = hook["timeoutMs"];
  const handles = Array.isArray(hook["handles"]) ? hook["handles"].map(text) : ["result"];
  return (
    <>
      <div className="panel-row">
        <label className="check"><input type="checkbox" checked={hook["blocking"] !== false} onChange={(e) => onEdit(setHook(doc, node.id, { blocking: e.target.checked, ...(e.target.checked ? {} : { answers: undefined, handles: undefined }) }))} /> The request waits for it</label>
        <label className="check"><input type="checkbox" checked={hook["answers"] === true} disabled={hook["blocking"] === false} onChange={(e) => onEdit(setHook(doc, node.id, { answers: e.target.checked ? true : undefined, ...(e.target.checked ? { handles: undefined } : {}) }))} /> It answers in place of the server</label>
      </div>
      <div className="panel-row" role="group" aria-label="Handles, after the MCP call">
        {["result", "error", "progress"].map((e) => <label key={e} className="check"><input type="checkbox" checked={handles.includes(e)} disabled={hook["blocking"] === false || hook["answers"] === true} onChange={(c) => { const next = c.target.checked ? [...handles, e] : handles.filter((each) => each !== e); onEdit(setHook(doc, node.id, { handles: next.length === 0 || next.join() === "result" ? undefined : next })); }} /> handles {e}</label>)}
      </div>
      <div className="panel-row">
        <label className="field"><span>Script</span>
          <select value={module} onChange={(e) => onEdit(setHook(doc, node.id, e.target.value === "" ? { hookModuleId: undefined, script: text(hook["script"]) || "// \n" } : { hookModuleId: e.target.value, script: undefined }))}>
            <option value="">own script</option>
            {choices.map((m) => <option key={m} value={m}>module {m}</option>)}
          </select></label>
        <label className="field"><span>Timeout, in milliseconds</span>
          <input type="text" inputMode="numeric" placeholder="5000" value={typeof timeout === "number" ? String(timeout) : ""} onChange={(e) => { const n = Number(e.target.value); onEdit(setHook(doc, node.id, { timeoutMs: e.target.value === "" ? undefined : Number.isFinite(n) ? n : timeout }), `timeout ${node.id}`); }} /></label>
      </div>
      {module === "" ? (
        <ScriptEditor label={`Script of ${titleOf(node)}`} script={text(hook["script"])} found={found.filter((d) => d.pointer.endsWith("/script") && d.line !== undefined)} onChange={(script) => onEdit(setHook(doc, node.id, { script }), `script ${node.id}`)} />
      ) : <ModuleScript id={module} own={own as Schemas["HookVerdict"]["module"][]} onTake={(script) => onEdit(setHook(doc, node.id, { hookModuleId: undefined, script }))} />}
    </>
  );
}

/** The script of a module: what is shared is saved by itself. */
function ModuleScript({ id, own, onTake }: { id: string; own: (Schemas["HookVerdict"]["module"])[]; onTake: (script: string) => void }) {
  const mine = own.find((m) => m?.id === id)?.script;
  const module = useHookModule(mine === undefined ? id : "");
  const shared = module.data?.module;
  const script = mine ?? shared?.script;
  if (script === undefined) return <p className="quiet">{module.isError ? "There is no such module." : "Reading the module…"}</p>;
  return (
    <>
      <p className="quiet">{mine !== undefined ? "It comes with this graph." : `Shared, from ${shared?.source ?? ""}; used by ${shared?.usedBy.join(", ") || "nothing else"}.`}</p>
      {mine === undefined && shared?.writable === true ? <SharedScript key={shared.base} module={shared} /> : <pre className="module-script" tabIndex={0} aria-label={`Script of the module ${id}`}>{script}</pre>}
      <button type="button" className="button button-small" onClick={() => onTake(script)}>Copy the script into this hook</button>
    </>
  );
}

/** Edits a shared module. It is saved apart from the graph: others run it, too. */
function SharedScript({ module }: { module: Schemas["HookModuleAnswer"]["module"] }) {
  const [text, setText] = useState(module.script);
  const save = useSaveHookModule();
  const may = useMay("define");
  const tell = useNotice();
  const send = () => save.mutate({ id: module.id, source: module.source, base: module.base ?? "", script: text }, { onSuccess: () => tell({ text: `The module ${module.id} is saved.` }) });
  return (
    <>
      <ScriptEditor label={`Script of the module ${module.id}`} script={module.script} found={none} onChange={setText} />
      {save.isError ? <Failed error={save.error} doing="save the module" /> : null}
      <button type="button" className="button button-small" disabled={!may || text === module.script || save.isPending} onClick={send}>Save the module</button>
    </>
  );
}

const none: Schemas["Diagnostic"][] = [];

/** Where a node leads: the way to connect nodes without a pointer. */
function Ways({ doc, node, onEdit }: { doc: HookDocument; node: HookNode; onEdit: Props["onEdit"] }) {
  const branches = node.type === "condition" ? ["true", "false"] : [undefined];
  return (
    <>
      {branches.map((branch) => {
        const ways = doc.edges.map((edge, i) => ({ edge, i })).filter(({ edge }) => edge.source === node.id && (branch === undefined || edge.sourceHandle === branch));
        const label = branch === undefined ? "Leads to" : `Leads to, if ${branch}`;
        return (
          <div key={branch ?? ""} className="field">
            <span>{label}</span>
            <ul className="ways">
              {ways.map(({ edge, i }) => <li key={i} className="ways-way"><span>{nameOf(doc, edge.target)}</span><button type="button" className="button button-small" aria-label={`Remove the edge to ${nameOf(doc, edge.target)}`} onClick={() => onEdit(without(doc, [], [i]))}>Remove</button></li>)}
              <li>
                <select aria-label={branch === undefined ? "Connect to" : `Connect to, if ${branch}`} value="" onChange={(e) => { if (e.target.value !== "") onEdit(connect(doc, node.id, e.target.value, branch)); }}>
                  <option value="">Connect to…</option>
                  {doc.nodes.map((n) => ({ n, why: whyNot(doc, { source: node.id, target: n.id, branch }) })).map(({ n, why }) => <option key={n.id} value={n.id} disabled={why !== undefined}>{titleOf(n)}{why === undefined ? "" : ` — ${why}`}</option>)}
                </select>
              </li>
            </ul>
          </div>
        );
      })}
    </>
  );
}
