import { Link, useSearchParams } from "wouter";
import { useUpstreams, type Upstream } from "../../api/gateway";
import { SearchBox } from "../../parts/SearchBox";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import "../../parts/table.css";
import { UpstreamState } from "./UpstreamState";
import "./gateway.css";

/** The MCP servers behind Guideway: how they are, and what of them waits. */
export function GatewayPage() {
  useTitle("Gateway");
  const upstreams = useUpstreams();
  return (
    <section className="section">
      <div className="section-head">
        <h1>Gateway</h1>
        <span className="actions"><Link href="/tokens" className="button">Tokens</Link><Link href="/new-upstream" className="button button-main">Add upstream</Link></span>
      </div>
      {upstreams.isPending ? <Skeleton rows={6} /> : null}
      {upstreams.isError ? <Failed error={upstreams.error} doing="read the upstreams" retry={() => void upstreams.refetch()} /> : null}
      {upstreams.isSuccess && !upstreams.data.on ? <Off /> : null}
      {upstreams.isSuccess && upstreams.data.upstreams.length === 0 ? (
        <Empty title="No upstreams yet">
          An upstream is another MCP server. Agents use its tools through the same endpoint as the workflows. Add one with the form, or paste the configuration of another client.
        </Empty>
      ) : null}
      {upstreams.isSuccess && upstreams.data.upstreams.length > 0 ? <Upstreams list={upstreams.data.upstreams} /> : null}
    </section>
  );
}

/** Says why agents do not see the upstreams. */
export function Off() {
  return (
    <div className="card" role="note">
      <p className="prose"><strong>Agents do not see the upstreams.</strong> The toolset <code>gateway</code> is off: add it to <code>toolsets</code> in guideway.json, or start with <code>guideway serve --toolsets steps,runs,sessions,context,gateway</code>.</p>
    </div>
  );
}

function Upstreams({ list }: { list: Upstream[] }) {
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string) => setSearch((now) => {
    if (value === "") now.delete(name);
    else now.set(name, value);
    return now;
  }, { replace: true });
  const words = (search.get("q") ?? "").toLowerCase();
  const project = search.get("project") ?? "";
  const projects = [...new Set(list.map((u) => u.project ?? ""))].filter((p) => p !== "").sort();
  const shown = list.filter((u) => (project === "" || u.project === project) && (words === "" || `${u.name} ${u.where} ${u.project ?? ""}`.toLowerCase().includes(words)));
  return (
    <>
      <div className="filters" role="search">
        <SearchBox label="Search upstreams" value={search.get("q") ?? ""} onSearch={(q) => set("q", q)} />
        {projects.length === 0 ? null : (
          <select aria-label="Project" value={project} onChange={(e) => set("project", e.target.value)}>
            <option value="">Any project</option>
            {projects.map((p) => <option key={p} value={p}>{p}</option>)}
          </select>
        )}
      </div>
      {shown.length === 0 ? <Empty title="No matching upstreams">Remove a filter to see more.</Empty> : <UpstreamTable list={shown} />}
    </>
  );
}

function UpstreamTable({ list }: { list: Upstream[] }) {
  return (
    <table className="table compact upstreams" aria-label="Upstreams">
      <thead>
        <tr>
          <th scope="col">Status</th><th scope="col">Name</th><th scope="col">Where</th><th scope="col">Project</th>
          <th scope="col" className="number">Tools</th><th scope="col">Waits</th><th scope="col" className="number">Answered</th>
        </tr>
      </thead>
      <tbody>
        {list.map((u) => (
          <tr key={u.name}>
            <td data-label="Status" title={u.error ?? u.health?.error}><UpstreamState upstream={u} /></td>
            <td data-label="Name" data-main><Link href={`/gateway/${encodeURIComponent(u.name)}`}>{u.name}</Link></td>
            <td data-label="Where" data-line className="quiet mono" title={u.where}>{u.where}</td>
            <td data-label="Project">{u.project}</td>
            <td data-label="Tools" data-named className="number">{u.tools < 0 ? <span title="Its tools are not listed yet">–</span> : u.tools}</td>
            <td data-label="Waits">{u.waiting > 0 ? <Link className="for-you" href={`/gateway/${encodeURIComponent(u.name)}`}>{u.waiting === 1 ? "1 tool" : `${u.waiting} tools`}</Link> : null}</td>
            <td data-label="Answered" data-end className="number"><Answered upstream={u} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** When an upstream last answered a ping, or was asked. */
export function Answered({ upstream: { health, askedAt } }: { upstream: Upstream }) {
  const ping = health?.pinged;
  if (ping !== undefined && ping.missed > 0) return <span className="for-you">{ping.missed === 1 ? "1 ping missed" : `${ping.missed} pings missed`}</span>;
  if (ping !== undefined) return <span title={`a ping at ${new Date(ping.at).toLocaleString()}`}>{ping.ms.toFixed(ping.ms < 10 ? 1 : 0)} ms</span>;
  return askedAt === undefined ? <span className="quiet">–</span> : <When at={askedAt} />;
}
