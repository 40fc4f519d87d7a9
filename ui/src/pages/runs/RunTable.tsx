import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import "../../parts/table.css";

/** Runs as rows. */
export function RunTable({ runs, label }: { runs: Schemas["Run"][]; label: string }) {
  return (
    <table className="table" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">Status</th><th scope="col">Goal</th><th scope="col">Workflow</th>
          <th scope="col">Where it is</th><th scope="col" className="number">Steps done</th><th scope="col" className="number">Changed</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((r) => (
          <tr key={r.runId}>
            <td data-label="Status"><Status word={r.status} /></td>
            <td data-label="Goal"><Link href={`/runs/${r.runId}`}>{r.goal === undefined || r.goal === "" ? r.runId : r.goal}</Link></td>
            <td data-label="Workflow">{r.workflowName}</td>
            <td data-label="Where it is">{r.title ?? r.step ?? ""}</td>
            <td data-label="Steps done" className="number">{r.done}</td>
            <td data-label="Changed" className="number"><When at={r.updatedAt} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
