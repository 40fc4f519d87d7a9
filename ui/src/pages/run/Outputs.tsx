import type { Schemas } from "../../api/client";
import { Empty } from "../../parts/States";
import { When } from "../../parts/When";

/** How many are drawn at first; outputs can be long. */
const drawn = 50;

/** What was handed in, step by step, the newest first. */
export function Outputs({ events, titles }: { events: Schemas["Event"][]; titles: Map<string, string> }) {
  const done = events.filter((e) => e.kind === "step_completed").reverse();
  if (done.length === 0) return <Empty title="Nothing handed in yet">The outputs and notes of completed steps come here.</Empty>;
  return (
    <ol className="outputs">
      {done.slice(0, drawn).map((e) => <Output key={e.seq} event={e} titles={titles} />)}
      {done.length > drawn ? <li className="quiet">{done.length - drawn} older ones are among the events.</li> : null}
    </ol>
  );
}

function Output({ event, titles }: { event: Schemas["Event"]; titles: Map<string, string> }) {
  const data = (event.data ?? {}) as { step?: string; round?: number; output?: string; notes?: string };
  const step = data.step ?? "";
  return (
    <li className="output">
      <h3>{titles.get(step) ?? step}{data.round === undefined ? "" : ` · round ${data.round}`} <span className="quiet output-when"><When at={event.at} /></span></h3>
      {data.output === undefined || data.output === "" ? null : <pre>{data.output}</pre>}
      {data.notes === undefined || data.notes === "" ? null : <><h4 className="quiet">Notes</h4><pre>{data.notes}</pre></>}
    </li>
  );
}
