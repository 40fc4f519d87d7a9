import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import "../../parts/table.css";

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

/** Longer lists draw only the rows that are seen. */
const drawnWhole = 60;

/** Runs as rows. onEnd is called when the last row comes near. */
export function RunTable({ rows, label, onEnd }: { rows: RunRow[]; label: string; onEnd?: () => void }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const all = rows.length <= drawnWhole;
  const virtual = useWindowVirtualizer({
    count: rows.length, enabled: !all, estimateSize: () => 33, overscan: 20, scrollMargin: top,
    getItemKey: (i) => rows[i]?.runId ?? i,
    onChange: (v) => {
      const last = v.getVirtualItems().at(-1);
      if (last !== undefined && last.index > rows.length - 40) onEnd?.();
    },
  });
  const seen = virtual.getVirtualItems();
  const before = all ? 0 : (seen[0]?.start ?? top) - top;
  const behind = all ? 0 : virtual.getTotalSize() - ((seen.at(-1)?.end ?? top) - top);
  const drawn = all ? rows.map((row, index) => ({ row, index })) : seen.flatMap(({ index }) => {
    const row = rows[index];
    return row === undefined ? [] : [{ row, index }];
  });
  const counted = rows.some((r) => r.done !== undefined);
  return (
    <table className="table runs" aria-label={label} aria-rowcount={rows.length + 1}>
      <thead>
        <tr>
          <th scope="col">Status</th><th scope="col">Goal</th><th scope="col">Workflow</th><th scope="col">Where it is</th>
          {counted ? <th scope="col" className="number">Steps done</th> : null}
          <th scope="col" className="number">Changed</th>
        </tr>
      </thead>
      <tbody ref={body}>
        <Space height={before} />
        {drawn.map(({ row, index }) => (
          <tr key={row.runId} ref={all ? null : virtual.measureElement} data-index={index} aria-rowindex={index + 2}>
            <td data-label="Status"><Status word={row.status} /></td>
            <td data-label="Goal" className="table-main"><Link href={`/runs/${row.runId}`}>{row.goal === "" ? row.runId : row.goal}</Link></td>
            <td data-label="Workflow">{row.workflow}</td>
            <td data-label="Where it is">{row.person ? <span className="for-you">For you · </span> : null}{row.at}</td>
            {counted ? <td data-label="Steps done" className="number">{row.done}</td> : null}
            <td data-label="Changed" className="number"><When at={row.updatedAt} /></td>
          </tr>
        ))}
        <Space height={behind} />
      </tbody>
    </table>
  );
}

/** Keeps the place of rows that are not drawn. */
function Space({ height }: { height: number }) {
  return height <= 0 ? null : <tr aria-hidden="true" className="table-space"><td colSpan={6} style={{ height }} /></tr>;
}
