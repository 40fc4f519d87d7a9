import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";
import type { Schemas } from "../../api/client";

interface Props {
  text: string;
  diagnostics: Schemas["Diagnostic"][];
  /** The line to show. */
  line: number | undefined;
}

/** A source with numbers and marks at the lines of findings. */
export function Source({ text, diagnostics, line }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const lines = useMemo(() => text.split("\n"), [text]);
  const marks = useMemo(() => new Map(diagnostics.filter((d) => d.line !== undefined).map((d) => [d.line, d])), [diagnostics]);
  const rows = useVirtualizer({ count: lines.length, getScrollElement: () => scroller.current, estimateSize: () => 18, overscan: 30 });
  useEffect(() => {
    if (line !== undefined) rows.scrollToIndex(line - 1, { align: "center" });
  }, [line, rows]);
  return (
    <div ref={scroller} className="source" tabIndex={0} role="region" aria-label="Source">
      <div style={{ height: rows.getTotalSize(), position: "relative" }}>
        {rows.getVirtualItems().map((row) => {
          const mark = marks.get(row.index + 1);
          return (
            <div key={row.key} ref={rows.measureElement} data-index={row.index} className="source-line" data-severity={mark?.severity} data-chosen={line === row.index + 1 || undefined}
              title={mark?.message} style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${row.start}px)` }}>
              <span>{row.index + 1}</span><code>{lines[row.index]}</code>
            </div>
          );
        })}
      </div>
    </div>
  );
}
