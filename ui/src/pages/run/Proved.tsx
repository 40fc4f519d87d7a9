import type { Schemas } from "../../api/client";
import { useRunEvents } from "../../api/reads";
import { Explained } from "../../parts/Explained";
import { countProved } from "./evidence";

/** The number of completed steps of a run, and how many of them a check decided. */
export function Proved({ run }: { run: Schemas["Run"] }) {
  const events = useRunEvents(run.runId);
  return <ProvedCount count={events.data === undefined ? undefined : countProved(events.data)} done={run.done} />;
}

/** Until the events are there, the steps are only counted. */
export function ProvedCount({ count, done }: { count: ReturnType<typeof countProved> | undefined; done: number }) {
  if (count === undefined || count.done === 0) return <>{done === 1 ? "1 step" : `${done} steps`} done</>;
  const claims = count.done - count.proved;
  const rest = claims === 0 ? "" : ` ${claims === 1 ? "1 step is a claim" : `${claims} steps are claims`} of the agent.`;
  return <Explained explanation={`A step is proved if a check that Guideway executed decided that it is done.${rest}`}>{count.proved} of {count.done === 1 ? "1 step" : `${count.done} steps`} proved</Explained>;
}
