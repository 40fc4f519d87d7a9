import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";

/** Runs of machines that wait for a person or are paused; their pages answer them. */
export function WaitingMachines({ runs }: { runs: Schemas["MachineRunRow"][] }) {
  if (runs.length === 0) return null;
  return (
    <ul className="waiting waiting-list" aria-label="Machines that are waiting for a person">
      {runs.map((r) => (
        <li key={r.runId} className="waiting-head">
          <div className="waiting-what"><h3><Link href={`/machine-runs/${r.runId}`}>{r.goal === undefined || r.goal === "" ? r.machine : `${r.machine}: ${r.goal}`}</Link></h3> <Status word={r.status} />{r.state === undefined || r.state === "" ? null : <span className="quiet"> in {r.state}</span>}</div>
          <span className="quiet">Machine · <When at={r.updatedAt} /></span>
        </li>
      ))}
    </ul>
  );
}
