import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { LongList } from "../../parts/LongList";
import { Empty } from "../../parts/States";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import { Checks } from "./Checks";
import { hasOutput } from "./events";
import type { CheckResult } from "./evidence";
import { LabelBadge } from "./LabelBadge";
import { Words } from "./RunPrompt";

interface Props {
  events: Schemas["Event"][];
  /** The titles of steps, by their ids. */
  titles: Map<string, string>;
  /** The checks of outputs, by the number of the event. */
  checks: Map<number, CheckResult[]>;
}

/** The outputs of steps with their checks, and the refused attempts, the newest first. */
export function Outputs({ events, titles, checks }: Props) {
  const done = useMemo(() => events.filter(hasOutput).reverse(), [events]);
  if (done.length === 0) return <Empty title="No outputs yet">The outputs and notes of completed steps appear here.</Empty>;
  return (
    <LongList label="Outputs, the newest first" count={done.length} estimate={84} keyOf={(i) => done[i]?.seq ?? i} className="outputs">
      {(i) => {
        const event = done[i];
        return event === undefined ? null : <Output event={event} titles={titles} checks={checks.get(event.seq) ?? []} />;
      }}
    </LongList>
  );
}

/** An output, with its label or with the criteria that it failed. */
export function Output({ event, titles, checks }: { event: Schemas["Event"]; titles: Map<string, string>; checks: CheckResult[] }) {
  const data = (event.data ?? {}) as { step?: string; round?: number; output?: string; notes?: string; message?: string; issues?: string[] };
  const isRefused = event.kind === "command_refused";
  const step = data.step ?? "";
  const isImported = event.by.via === "import";
  return (
    <div className="output">
      <header className="output-head">
        <h3>{titles.get(step) ?? step}{data.round === undefined ? "" : ` · round ${data.round}`}</h3>
        {isRefused ? <Status word="refused" /> : null}
        {event.label === undefined ? null : <LabelBadge label={event.label} checks={checks} isImported={isImported} />}
        <span className="quiet output-when"><When at={event.at} /></span>
      </header>
      {data.output === undefined || data.output === "" ? null : <pre>{data.output}</pre>}
      {data.notes === undefined || data.notes === "" ? null : <><h4 className="quiet">Notes</h4><pre>{data.notes}</pre></>}
      {isRefused && data.issues === undefined && data.message !== undefined ? <p>{data.message}</p> : null}
      {isRefused ? <Words title="Failed criteria" list={data.issues} /> : null}
      <Checks list={checks} isImported={isImported} />
    </div>
  );
}
