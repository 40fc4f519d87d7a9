import { Link } from "wouter";
import { useUpstreams, type Upstream } from "../../api/gateway";
import { UpstreamState } from "../gateway/UpstreamState";

/** How the upstreams are: those that want somebody, and the others in a line. */
export function Upstreams() {
  const upstreams = useUpstreams();
  const list = upstreams.data?.on === true ? upstreams.data.upstreams : [];
  if (list.length === 0) return null;
  const wanting = list.filter((u) => u.state === "failed" || u.state === "wrong" || (u.health?.pinged?.missed ?? 0) > 0);
  return (
    <section className="section" aria-labelledby="upstreams">
      <div className="section-head"><h2 id="upstreams">Upstreams</h2><Link href="/gateway">All upstreams</Link></div>
      {wanting.length === 0 ? null : (
        <ul className="bullets">
          {wanting.map((u) => <li key={u.name}><Link href={`/gateway/${encodeURIComponent(u.name)}`}>{u.name}</Link> <UpstreamState upstream={u} /> <span className="quiet">{wants(u)}</span></li>)}
        </ul>
      )}
      <p className="quiet">{summary(list)}</p>
    </section>
  );
}

function wants(u: Upstream): string {
  return u.error ?? u.health?.error ?? "it does not answer pings";
}

function summary(list: Upstream[]): string {
  const counts = new Map<string, number>();
  for (const u of list) counts.set(u.state, (counts.get(u.state) ?? 0) + 1);
  return [...counts].map(([state, n]) => `${n} ${state}`).join(" · ");
}
