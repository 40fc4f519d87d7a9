import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, type ReactNode } from "react";
import "./longlist.css";

interface Props {
  label: string;
  count: number;
  /** About how high an item is, in pixels. */
  estimate: number;
  keyOf: (index: number) => string | number;
  className?: string;
  children: (index: number) => ReactNode;
}

/** A list that scrolls in itself and draws only the items that are seen. */
export function LongList({ label, count, estimate, keyOf, className, children }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({ count, getScrollElement: () => scroller.current, estimateSize: () => estimate, overscan: 12, getItemKey: keyOf });
  return (
    <div ref={scroller} className={className === undefined ? "long" : `long ${className}`} tabIndex={0} role="list" aria-label={label}>
      <div className="long-space" style={{ height: rows.getTotalSize() }} role="presentation">
        {rows.getVirtualItems().map((row) => (
          <div key={row.key} ref={rows.measureElement} data-index={row.index} role="listitem" aria-posinset={row.index + 1} aria-setsize={count} className="long-item" style={{ transform: `translateY(${row.start}px)` }}>
            {children(row.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
