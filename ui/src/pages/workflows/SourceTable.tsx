import type { Schemas } from "../../api/client";
import { When } from "../../parts/When";
import "../../parts/table.css";

const states: Record<Schemas["SourceStatus"]["state"], string> = { unread: "not read yet", ok: "read", missing: "is not there", failed: "cannot be read", blocked: "is blocked" };

/** Where definitions come from, the highest precedence first. */
export function SourceTable({ sources }: { sources: Schemas["SourceStatus"][] }) {
  return (
    <table className="table sources" aria-label="Sources, the highest precedence first">
      <thead>
        <tr>
          <th scope="col">Source</th><th scope="col">Where</th><th scope="col">State</th>
          <th scope="col" className="number">Served</th><th scope="col" className="number">Broken</th><th scope="col" className="number">Last read</th>
        </tr>
      </thead>
      <tbody>
        {[...sources].reverse().map((s) => (
          <tr key={s.name}>
            <td data-label="Source">{s.name}</td>
            <td data-label="Where" title={s.location} className="mono">{s.location ?? "built in"}</td>
            <td data-label="State" title={s.error} data-state={s.state}>{states[s.state]}{s.error === undefined ? "" : `: ${s.error}`}</td>
            <td data-label="Served" className="number">{s.served}</td>
            <td data-label="Broken" className="number">{s.broken}</td>
            <td data-label="Last read" className="number"><When at={s.loaded} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
