import { useMemo } from "react";
import type { Schemas } from "../../api/client";
import { LongList } from "../../parts/LongList";
import { Empty } from "../../parts/States";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import { hasOutput } from "./events";
import { Words } from "./RunPrompt";

/** The outputs of steps, with the refused attempts, the newest first. */
export function Outputs({ events, titles }: { events: Schemas["Event"][]; titles: Map<string, string> }) {
  const done = useMemo(() => events.filter(hasOutput).reverse(), [events]);
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
  const data = (event.data ?? {}) as { step?: string; round?: number; output?: string; notes?: string; issues?: string[] };
  const isRefused = event.kind === "command_refused";
  const step = data.step ?? "";
  return (
    <div className="output">
      <h3>{titles.get(step) ?? step}{data.round === undefined ? "" : ` · round ${data.round}`} {isRefused ? <Status word="refused" /> : null} <span className="quiet output-when"><When at={event.at} /></span></h3>
      {data.output === undefined || data.output === "" ? null : <pre>{data.output}</pre>}
      {data.notes === undefined || data.notes === "" ? null : <><h4 className="quiet">Notes</h4><pre>{data.notes}</pre></>}
      {isRefused ? <Words title="Failed criteria" list={data.issues} /> : null}
    </div>
  );
}
