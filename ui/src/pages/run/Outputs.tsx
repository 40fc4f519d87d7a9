import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { LongList } from "../../parts/LongList";
import { Empty } from "../../parts/States";
import { When } from "../../parts/When";

/** What was handed in, step by step, the newest first. */
export function Outputs({ events, titles }: { events: Schemas["Event"][]; titles: Map<string, string> }) {
  const done = useMemo(() => events.filter((e) => e.kind === "step_completed").reverse(), [events]);
  if (done.length === 0) return <Empty title="No outputs yet">The outputs and notes of completed steps appear here.</Empty>;
  return (
    <LongList label="Outputs, the newest first" count={done.length} estimate={84} keyOf={(i) => done[i]?.seq ?? i} className="outputs">
      {(i) => {
        const event = done[i];
        return event === undefined ? null : <Output event={event} titles={titles} />;
      }}
    </LongList>
  );
}

function Output({ event, titles }: { event: Schemas["Event"]; titles: Map<string, string> }) {
  const data = (event.data ?? {}) as { step?: string; round?: number; output?: string; notes?: string };
  const step = data.step ?? "";
  return (
    <div className="output">
      <h3>{titles.get(step) ?? step}{data.round === undefined ? "" : ` · round ${data.round}`} <span className="quiet output-when"><When at={event.at} /></span></h3>
      {data.output === undefined || data.output === "" ? null : <pre>{data.output}</pre>}
      {data.notes === undefined || data.notes === "" ? null : <><h4 className="quiet">Notes</h4><pre>{data.notes}</pre></>}
    </div>
  );
}
