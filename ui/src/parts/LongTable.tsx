import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useRef, useState, type ReactNode } from "react";
import "./table.css";

interface Props<Row> {
  label: string;
  className: string;
  /** The cells of the heading. */
  head: ReactNode;
  columns: number;
  rows: Row[];
  keyOf: (row: Row) => string;
  /** The cells of a row. */
  children: (row: Row) => ReactNode;
  /** Is called when the last row comes near. */
  onEnd?: (() => void) | undefined;
}

/** Longer tables draw only the rows that are seen. */
const drawnWhole = 60;

/** A table that scrolls with the page and stays quick however long it is. */
export function LongTable<Row>({ label, className, head, columns, rows, keyOf, children, onEnd }: Props<Row>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const all = rows.length <= drawnWhole;
  const virtual = useWindowVirtualizer({
    count: rows.length, enabled: !all, estimateSize: () => 33, overscan: 20, scrollMargin: top,
    getItemKey: (i) => {
      const row = rows[i];
      return row === undefined ? i : keyOf(row);
    },
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
  return (
    <table className={`table ${className}`} aria-label={label} aria-rowcount={rows.length + 1}>
      <thead><tr>{head}</tr></thead>
      <tbody ref={body}>
        <Space height={before} columns={columns} />
        {drawn.map(({ row, index }) => (
          <tr key={keyOf(row)} ref={all ? null : virtual.measureElement} data-index={index} aria-rowindex={index + 2}>{children(row)}</tr>
        ))}
        <Space height={behind} columns={columns} />
      </tbody>
    </table>
  );
}

/** Keeps the place of rows that are not drawn. */
function Space({ height, columns }: { height: number; columns: number }) {
  return height <= 0 ? null : <tr aria-hidden="true" className="table-space"><td colSpan={columns} style={{ height }} /></tr>;
}
