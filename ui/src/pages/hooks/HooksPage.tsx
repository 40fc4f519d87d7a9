import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useDisableHook, useHooks } from "../../api/hooks";
import { useMay } from "../../api/reads";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { DiagnosticList } from "../workflows/DiagnosticList";
import { bindingWords, HookState, methodWords } from "./Activity";
import { ImportHook } from "./ImportHook";
import "../../parts/table.css";
import "./list.css";

/** The hook graphs: what lets nothing pass first, then what is active, and what could be. */
export function HooksPage() {
  useTitle("Hooks");
  const hooks = useHooks();
  const [importing, setImporting] = useState(false);
  return (
    <>
      <div className="section-head workflows-head">
        <h1>Hooks</h1>
        <div className="actions"><button type="button" className="button" onClick={() => setImporting(true)}>Import…</button><Link href="/new-hook" className="button button-main">New graph</Link></div>
      </div>
      {hooks.isPending ? <Skeleton rows={10} /> : null}
      {hooks.isError ? <Failed error={hooks.error} doing="read the hook graphs" retry={() => void hooks.refetch()} /> : null}
      {hooks.isSuccess ? <All list={hooks.data} /> : null}
      {importing ? <ImportHook onClose={() => setImporting(false)} /> : null}
    </>
  );
}

function All({ list }: { list: Schemas["HookList"] }) {
  const graphs = list.graphs.filter((g) => g.state !== "template");
  const templates = list.graphs.filter((g) => g.state === "template");
  const rank = (g: Schemas["Hook"]) => (g.state === "changed" || (g.enabled && g.state !== "active") ? 0 : g.state === "active" ? 1 : g.state === "broken" ? 2 : 3);
  return (
    <>
      {list.missing.length === 0 ? null : <Gone list={list.missing} />}
      <section className="section" aria-label="Hook graphs">
        {graphs.length === 0 ? <Empty title="No hook graphs">A hook graph wraps tool calls and changes, answers, refuses or records them. Create one, or copy a template.</Empty> : <Graphs label="Hook graphs" list={[...graphs].sort((a, b) => rank(a) - rank(b) || a.id.localeCompare(b.id))} />}
      </section>
      {list.chains.length === 0 ? null : (
        <section className="section" aria-labelledby="chains">
          <h2 id="chains">Chains <span className="quiet">a request passes them from the client, its response in reverse</span></h2>
          {list.chains.map((c) => <Chain key={c.method} chain={c} />)}
        </section>
      )}
      {templates.length === 0 ? null : (
        <section className="section" aria-labelledby="templates">
          <h2 id="templates">Templates <span className="quiet">to copy</span></h2>
          <Graphs label="Templates" list={templates} />
        </section>
      )}
      <section className="section" aria-labelledby="modules">
        <h2 id="modules">Modules <span className="quiet">scripts that graphs share</span></h2>
        {list.modules.length === 0 ? <Empty title="No modules">Add one to the folder <code>hooks/modules</code> of your workflows.</Empty> : <Modules list={list.modules} />}
      </section>
      {list.diagnostics.length === 0 ? null : <section className="section" aria-labelledby="found"><h2 id="found">Diagnostics</h2><div className="card"><DiagnosticList list={list.diagnostics} withFile /></div></section>}
    </>
  );
}

/** The enabled graphs of a method, nested from the client to the upstream. */
function Chain({ chain }: { chain: Schemas["HookChain"] }) {
  return (
    <ol className="chain" aria-label={`Chain of ${chain.method}`}>
      <li className="quiet"><code>{chain.method}</code> client</li>
      {chain.graphs.map((g) => <li key={g.id} className="chain-graph" title={bindingWords(g)}><Link href={`/hooks/${encodeURIComponent(g.id)}`}>{g.id}</Link> <span className="quiet">{g.order}</span></li>)}
      <li className="quiet">upstream</li>
    </ol>
  );
}

/** What is enabled and gone: what it stood around is refused. */
function Gone({ list }: { list: Schemas["HookList"]["missing"] }) {
  const may = useMay("define");
  const disable = useDisableHook();
  return (
    <section className="section" aria-labelledby="gone">
      <h2 id="gone">Enabled, but deleted</h2>
      {list.map((m) => (
        <div key={`${m.source} ${m.id}`} className="card gone" role="alert">
          <p><strong>{m.id}</strong> was deleted from {m.source}. The requests that it wrapped are refused until you disable or restore it: <Link href={`/hooks/${encodeURIComponent(m.id)}`}>its page</Link>.</p>
          <button type="button" className="button" disabled={!may} onClick={() => disable.mutate(m.id)}>Disable {m.id}</button>
        </div>
      ))}
    </section>
  );
}

function Graphs({ label, list }: { label: string; list: Schemas["Hook"][] }) {
  return (
    <table className="table workflows hooks-table" aria-label={label}>
      <thead><tr><th scope="col">Name</th><th scope="col">Description</th><th scope="col">State</th><th scope="col">Wraps</th><th scope="col">Source</th></tr></thead>
      <tbody>
        {list.map((g) => (
          <tr key={g.id}>
            <td data-label="Name">{g.state === "template" ? <span className="hooks-name"><Link href={`/hooks/${encodeURIComponent(g.id)}`}>{g.name ?? g.id}</Link> <Link href={`/new-hook?from=${encodeURIComponent(g.id)}`} className="button button-small" aria-label={`Copy ${g.id}`}>Copy</Link></span> : <Link href={`/hooks/${encodeURIComponent(g.id)}`}>{g.name ?? g.id}</Link>}</td>
            <td data-label="Description" className="quiet" title={g.why ?? g.description}>{g.why ?? g.description ?? ""}</td>
            <td data-label="State"><HookState hook={g} /></td>
            <td data-label="Wraps" title={bindingWords(g)}><code>{methodWords(g)}</code> {bindingWords(g)}</td>
            <td data-label="Source" title={g.path}>{g.source}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Modules({ list }: { list: Schemas["HookModule"][] }) {
  return (
    <table className="table workflows" aria-label="Modules">
      <thead><tr><th scope="col">Module</th><th scope="col">Used by</th><th scope="col">Source</th></tr></thead>
      <tbody>
        {list.map((m) => (
          <tr key={`${m.source} ${m.id}`}>
            <td data-label="Name"><code>{m.id}</code></td>
            <td data-label="Description">{m.usedBy.map((id, i) => <span key={id}>{i === 0 ? "" : ", "}<Link href={`/hooks/${encodeURIComponent(id)}`}>{id}</Link></span>)}</td>
            <td data-label="Source" title={m.path}>{m.source}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
