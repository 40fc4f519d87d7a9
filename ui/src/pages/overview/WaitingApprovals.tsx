import { Link } from "wouter";
import type { Upstream } from "../../api/gateway";
import type { Schemas } from "../../api/client";

/** What a person has to approve: changed tools of upstreams, and hook graphs that are not what was approved. */
export function WaitingApprovals({ upstreams, hooks }: { upstreams: Upstream[]; hooks: Schemas["Hook"][] }) {
  if (upstreams.length + hooks.length === 0) return null;
  return (
    <ul className="waiting waiting-list" aria-label="Changes that are waiting for approval">
      {upstreams.map((u) => (
        <li key={u.name} className="waiting-head">
          <div className="waiting-what"><h3><Link href={`/gateway/${encodeURIComponent(u.name)}`}>{u.name}</Link></h3> <span className="quiet">{u.waiting === 1 ? "1 tool is waiting for your approval" : `${u.waiting} tools are waiting for your approval`}</span></div>
          <span className="quiet">Upstream</span>
        </li>
      ))}
      {hooks.map((h) => (
        <li key={h.id} className="waiting-head">
          <div className="waiting-what"><h3><Link href={`/hooks/${encodeURIComponent(h.id)}`}>{h.name ?? h.id}</Link></h3> <span className="quiet">has changed since it was approved: the requests that it wraps are refused</span></div>
          <span className="quiet">Hook graph</span>
        </li>
      ))}
    </ul>
  );
}
