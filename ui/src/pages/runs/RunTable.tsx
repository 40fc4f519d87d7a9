import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { LongTable } from "../../parts/LongTable";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";

/** What a row says of a run, from a list or from a search. */
export interface RunRow {
  runId: string;
  status: Schemas["RunStatus"];
  person: boolean;
  goal: string;
  workflow: string;
  at: string;
  done: number | undefined;
  updatedAt: string;
}

/** A run of a list as a row. */
export function rowOf(r: Schemas["Run"]): RunRow {
  return {
    runId: r.runId, status: r.status, person: r.person === true, goal: r.goal ?? "", workflow: r.workflowName,
    at: r.title ?? r.step ?? "", done: r.done, updatedAt: r.updatedAt,
  };
}

/** Runs as rows. onEnd is called when the last row comes near. */
export function RunTable({ rows, label, onEnd }: { rows: RunRow[]; label: string; onEnd?: () => void }) {
  const counted = rows.some((r) => r.done !== undefined);
  const head = (
    <>
      <th scope="col">Status</th><th scope="col">Goal</th><th scope="col">Workflow</th><th scope="col">Where it is</th>
      {counted ? <th scope="col" className="number">Steps done</th> : null}
      <th scope="col" className="number">Changed</th>
    </>
  );
  return (
    <LongTable label={label} className="runs" head={head} columns={counted ? 6 : 5} rows={rows} keyOf={(r) => r.runId} onEnd={onEnd}>
      {(row) => (
        <>
          <td data-label="Status"><Status word={row.status} /></td>
          <td data-label="Goal" className="table-main"><Link href={`/runs/${row.runId}`}>{row.goal === "" ? row.runId : row.goal}</Link></td>
          <td data-label="Workflow">{row.workflow}</td>
          <td data-label="Where it is">{row.person ? <span className="for-you">For you · </span> : null}{row.at}</td>
          {counted ? <td data-label="Steps done" className="number">{row.done}</td> : null}
          <td data-label="Changed" className="number"><When at={row.updatedAt} /></td>
        </>
      )}
    </LongTable>
  );
}
