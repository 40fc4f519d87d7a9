import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { bytes } from "../../parts/sizes";
import "../../parts/table.css";
import { When } from "../../parts/When";
import { RequestStatus } from "./RequestStatus";
import { target, took } from "./words";

/** Longer lists draw only the rows that are seen. */
const drawnWhole = 60;

/** Requests as rows. onEnd is called when the last row comes near. */
export function RequestTable({ rows, onEnd }: { rows: Schemas["Request"][]; onEnd: () => void }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const all = rows.length <= drawnWhole;
  const virtual = useWindowVirtualizer({
    count: rows.length, enabled: !all, estimateSize: () => 33, overscan: 20, scrollMargin: top,
    getItemKey: (i) => rows[i]?.id ?? i,
    onChange: (v) => {
      const last = v.getVirtualItems().at(-1);
      if (last !== undefined && last.index > rows.length - 40) onEnd();
    },
  });
  const seen = virtual.getVirtualItems();
  const before = all ? 0 : (seen[0]?.start ?? top) - top;
  const behind = all ? 0 : virtual.getTotalSize() - ((seen.at(-1)?.end ?? top) - top);
  const drawn = all ? rows.map((row, index) => ({ row, index })) : seen.flatMap(({ index }) => {
    const row = rows[index];
    return row === undefined ? [] : [{ row, index }];
  });
  return (
    <table className="table requests" aria-label="Requests" aria-rowcount={rows.length + 1}>
      <thead>
        <tr>
          <th scope="col">Status</th><th scope="col">Tool</th><th scope="col">Client</th><th scope="col">Hooks</th>
          <th scope="col" className="number">Answer</th><th scope="col" className="number">Took</th><th scope="col" className="number">When</th>
        </tr>
      </thead>
      <tbody ref={body}>
        <Space height={before} />
        {drawn.map(({ row, index }) => (
          <tr key={row.id} ref={all ? null : virtual.measureElement} data-index={index} aria-rowindex={index + 2}>
            <td data-label="Status"><RequestStatus status={row.status} /></td>
            <td data-label="Tool" className="table-main" title={row.error}><Link href={`/requests/${row.id}`}>{target(row)}</Link></td>
            <td data-label="Client">{row.token ?? row.client}</td>
            <td data-label="Hooks">{row.hooks?.join(", ")}</td>
            <td data-label="Answer" className="number">{bytes(row.bytesOut)}</td>
            <td data-label="Took" className="number">{took(row.ms)}</td>
            <td data-label="When" className="number"><When at={row.at} /></td>
          </tr>
        ))}
        <Space height={behind} />
      </tbody>
    </table>
  );
}

/** Keeps the place of rows that are not drawn. */
function Space({ height }: { height: number }) {
  return height <= 0 ? null : <tr aria-hidden="true" className="table-space"><td colSpan={7} style={{ height }} /></tr>;
}
