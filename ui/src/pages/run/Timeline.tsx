import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import type { Schemas } from "../../api/client";
import { stepOf } from "../../graph/states";
import { Empty } from "../../parts/States";
import { When } from "../../parts/When";
import { Check, Checks } from "./Checks";
import { told } from "./events";
import { readCheck, type CheckResult } from "./evidence";
import { ForkHere } from "./ForkHere";
import { LabelBadge, PlainLabel } from "./LabelBadge";
import { Words } from "./RunPrompt";

interface Props {
  runId: string;
  events: Schemas["Event"][];
  /** The titles of steps, by their ids. */
  titles: Map<string, string>;
  /** The checks of outputs, by the number of the event. */
  checks: Map<number, CheckResult[]>;
  /** Only events of this step, if it is given. */
  about: string | undefined;
  onAll: () => void;
}

/** The events of a run, the newest first. Long runs draw only what is seen. */
export function Timeline({ runId, events, titles, checks, about, onAll }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => (about === undefined ? events : events.filter((e) => stepOf(e.data) === about)), [events, about]);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 34,
    overscan: 12,
    getItemKey: (i) => shown[shown.length - 1 - i]?.seq ?? i,
  });
  return (
    <>
      {about === undefined ? null : (
        <p className="timeline-about">Events of <strong>{titles.get(about) ?? about}</strong> <button type="button" className="button button-small" onClick={onAll}>Show all</button></p>
      )}
      {shown.length === 0 ? <Empty title="Nothing yet">The run has not reached this step.</Empty> : null}
      <div ref={scroller} className="timeline" tabIndex={0} role="list" aria-label="Events, the newest first" hidden={shown.length === 0}>
        <div style={{ height: rows.getTotalSize(), position: "relative" }} role="presentation">
          {rows.getVirtualItems().map((row) => {
            const event = shown[shown.length - 1 - row.index];
            if (event === undefined) return null;
            return (
              <div key={row.key} ref={rows.measureElement} data-index={row.index} role="listitem" aria-posinset={row.index + 1} aria-setsize={shown.length} className="event" style={{ transform: `translateY(${row.start}px)` }}>
                <EventRow runId={runId} event={event} titles={titles} checks={checks.get(event.seq) ?? []} />
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

/** An event on a line, and what is known of it below. */
export function EventRow({ runId, event, titles, checks }: { runId: string; event: Schemas["Event"]; titles: Map<string, string>; checks: CheckResult[] }) {
  const { word, kind, about, text, failed } = told(event, titles);
  const check = readCheck(event);
  const isImported = event.by.via === "import";
  return (
    <details className="event-row">
      <summary>
        <span className="event-seq mono quiet">{event.seq}</span>
        <span className="event-what" data-kind={kind}>{word}</span>
        <span className="event-about">{event.label === undefined ? null : <><PlainLabel label={event.label} /> </>}{about}</span>
        <span className="event-when quiet"><When at={event.at} /></span>
      </summary>
      <div className="event-more">
        <p className="quiet">{byWords(event.by)}, <time dateTime={event.at}>{new Date(event.at).toLocaleString()}</time></p>
        {event.label === undefined ? null : <p><LabelBadge label={event.label} checks={checks} isImported={isImported} /></p>}
        {text === "" ? null : <pre>{text}</pre>}
        <Words title="Failed criteria" list={failed} />
        <Checks list={checks} isImported={isImported} />
        {check === undefined ? null : <div className="checks"><Check check={check} isOpen /></div>}
        <ForkHere runId={runId} seq={event.seq} />
      </div>
    </details>
  );
}

const ways: Record<Schemas["By"]["via"], string> = {
  agent: "By an agent", server: "By the server", elicitation: "By a person, asked by the client", terminal: "By a person at a terminal",
  browser: "By a person in a browser", token: "By a token that may approve", import: "By an import",
};

function byWords(by: Schemas["By"]): string {
  return ways[by.via] + (by.client === undefined || by.client === "" ? "" : ` (${by.client})`);
}
