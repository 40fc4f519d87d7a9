import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { LongTable } from "../../parts/LongTable";
import { bytes } from "../../parts/sizes";
import { When } from "../../parts/When";
import { RequestStatus } from "./RequestStatus";
import { target, took } from "./words";

/** Requests as rows. onEnd is called when the last row comes near. */
export function RequestTable({ rows, onEnd }: { rows: Schemas["Request"][]; onEnd: () => void }) {
  const head = (
    <>
      <th scope="col">Status</th><th scope="col">Tool</th><th scope="col">Client</th><th scope="col">Hooks</th>
      <th scope="col" className="number">Answer</th><th scope="col" className="number">Took</th><th scope="col" className="number">When</th>
    </>
  );
  return (
    <LongTable label="Requests" className="requests" head={head} columns={7} rows={rows} keyOf={(r) => r.id} onEnd={onEnd}>
      {(row) => (
        <>
          <td data-label="Status"><RequestStatus status={row.status} /></td>
          <td data-label="Tool" className="table-main" title={row.error}><Link href={`/requests/${row.id}`}>{target(row)}</Link></td>
          <td data-label="Client">{row.token ?? row.client}</td>
          <td data-label="Hooks">{row.hooks?.join(", ")}</td>
          <td data-label="Answer" className="number">{bytes(row.bytesOut)}</td>
          <td data-label="Took" className="number">{took(row.ms)}</td>
          <td data-label="When" className="number"><When at={row.at} /></td>
        </>
      )}
    </LongTable>
  );
}
