import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef } from "react";
import type { Schemas } from "../../api/client";
import { When } from "../../parts/When";
import { told } from "./events";

/** All events of a run, the newest first. Long runs draw only what is seen. */
export function Timeline({ events }: { events: Schemas["Event"][] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 44,
    overscan: 12,
    measureElement: (e) => e.getBoundingClientRect().height,
  });
  return (
    <section className="panel" aria-labelledby="timeline">
      <h2 id="timeline">Events <span className="quiet">{events.length}</span></h2>
      <div ref={scroller} className="timeline" tabIndex={0} role="list" aria-label="Events, the newest first">
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((row) => {
            const event = events[events.length - 1 - row.index];
            if (event === undefined) return null;
            return (
              <div key={event.seq} ref={rows.measureElement} data-index={row.index} role="listitem" className="event" style={{ transform: `translateY(${row.start}px)` }}>
                <EventRow event={event} />
              </div>
            );
          })}
        </div>
      </div>
    </section>
  );
}

function EventRow({ event }: { event: Schemas["Event"] }) {
  const { word, kind, about, text } = told(event);
  return (
    <>
      <span className="event-seq mono quiet">{event.seq}</span>
      <span className="event-what" data-kind={kind}>{word}</span>
      <span className="event-about">{about}</span>
      <span className="event-when quiet"><When at={event.at} /></span>
      {text === "" ? null : (
        <details className="event-text"><summary>{firstLine(text)}</summary><pre>{text}</pre></details>
      )}
    </>
  );
}

function firstLine(text: string): string {
  const line = text.split("\n", 1)[0] ?? "";
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}
