import { Link, useSearchParams } from "wouter";
import { useHooks } from "../../api/hooks";
import { useMachines } from "../../api/machines";
import { useCatalog, useWorkflows } from "../../api/reads";
import { SearchBox } from "../../parts/SearchBox";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import "../../parts/table.css";
import { DiagnosticList } from "./DiagnosticList";
import { entriesOf, type Entry } from "./entries";
import { SourceTable } from "./SourceTable";
import "./workflows.css";

/** The catalog: what did not load, what is served in all dialects, and where it comes from. */
export function WorkflowsPage() {
  useTitle("Workflows");
  const workflows = useWorkflows();
  const machines = useMachines();
  const hooks = useHooks();
  const catalog = useCatalog();
  const broken = catalog.data?.diagnostics ?? [];
  return (
    <>
      <div className="section-head workflows-head"><h1>Workflows</h1><Link href="/new-workflow" className="button">New workflow</Link></div>
      {broken.length > 0 ? (
        <section className="section" aria-labelledby="broken">
          <h2 id="broken">Does not load <span className="quiet">{new Set(broken.map((d) => d.file)).size}</span></h2>
          <div className="card"><DiagnosticList list={broken} withFile /></div>
        </section>
      ) : null}
      <section className="section" aria-label="Served workflows">
        {workflows.isPending || machines.isPending || hooks.isPending ? <Skeleton rows={10} /> : null}
        {workflows.isError ? <Failed error={workflows.error} doing="read the workflows" retry={() => void workflows.refetch()} /> : null}
        {machines.isError ? <Failed error={machines.error} doing="read the machines" retry={() => void machines.refetch()} /> : null}
        {hooks.isError ? <Failed error={hooks.error} doing="read the hook graphs" retry={() => void hooks.refetch()} /> : null}
        {workflows.isSuccess && !machines.isPending && !hooks.isPending ? <Served list={entriesOf({ workflows: workflows.data.workflows, machines: machines.data?.machines ?? [], hooks: hooks.data?.graphs ?? [] })} /> : null}
      </section>
      <section className="section" aria-labelledby="sources">
        <h2 id="sources">Sources</h2>
        {catalog.isPending ? <Skeleton rows={4} /> : null}
        {catalog.isError ? <Failed error={catalog.error} doing="read the sources" retry={() => void catalog.refetch()} /> : null}
        {catalog.isSuccess ? <SourceTable sources={catalog.data.sources} /> : null}
      </section>
    </>
  );
}

function Served({ list }: { list: Entry[] }) {
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string) => setSearch((now) => {
    if (value === "") now.delete(name);
    else now.set(name, value);
    return now;
  }, { replace: true });
  const words = (search.get("q") ?? "").toLowerCase();
  const source = search.get("source") ?? "";
  const dialect = search.get("dialect") ?? "";
  const shown = list.filter((w) => (source === "" || w.source === source) && (dialect === "" || w.dialect === dialect) && (words === "" || `${w.id} ${w.name} ${w.about}`.toLowerCase().includes(words)));
  return (
    <>
      <div className="filters" role="search">
        <SearchBox label="Search workflows" value={search.get("q") ?? ""} onSearch={(q) => set("q", q)} />
        <select aria-label="Dialect" value={dialect} onChange={(e) => set("dialect", e.target.value)}>
          <option value="">Any dialect</option>
          {[...new Set(list.map((w) => w.dialect))].sort().map((d) => <option key={d} value={d}>{d}</option>)}
        </select>
        <select aria-label="Source" value={source} onChange={(e) => set("source", e.target.value)}>
          <option value="">Any source</option>
          {[...new Set(list.map((w) => w.source))].map((s) => <option key={s} value={s}>{s}</option>)}
        </select>
      </div>
      {list.length === 0 ? <Empty title="No workflows">Put one into the directory <code>workflows</code> of your project, or create one here.</Empty> : null}
      {list.length > 0 && shown.length === 0 ? <Empty title="No matching workflows">Remove a filter to see more.</Empty> : null}
      {shown.length > 0 ? <WorkflowTable list={shown} /> : null}
    </>
  );
}

function WorkflowTable({ list }: { list: Entry[] }) {
  return (
    <table className="table workflows" aria-label="Workflows">
      <thead><tr><th scope="col">Name</th><th scope="col">Description</th><th scope="col">Dialect</th><th scope="col">Source</th><th scope="col" className="number">Version</th></tr></thead>
      <tbody>
        {list.map((w) => (
          <tr key={`${w.dialect} ${w.source} ${w.id}`}>
            <td data-label="Name"><Link href={w.href}>{w.name}</Link>{w.stale ? <span className="stale"> Old version: the file does not load any more</span> : null}</td>
            <td data-label="Description" title={w.about} className="quiet">{w.about}</td>
            <td data-label="Dialect">{w.dialect}</td>
            <td data-label="Source" title={w.path}>{w.source}</td>
            <td data-label="Version" className="number">{w.version}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
