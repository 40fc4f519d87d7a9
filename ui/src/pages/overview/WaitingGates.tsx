import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useRunsByID } from "../../api/reads";
import { Skeleton } from "../../parts/States";
import { rowOf, RunTable } from "../runs/RunTable";
import { countMore, isSettled, refill, type Held } from "./hold";
import { WaitingRun } from "./WaitingRun";

type Run = Schemas["Run"];

/** How many rows the table below the forms has. */
const mostRows = 20;

/**
 * The gates that wait for a person, the oldest first. Nothing moves while a person reads:
 * answered gates stay and new ones are counted, until the person updates the list.
 */
export function WaitingGates({ waiting }: { waiting: Run[] }) {
  const [held, setHeld] = useState<Held<Run>>({ forms: [], rest: [] });
  const [settled, setSettled] = useState(new Map<string, number>());
  const [moved, setMoved] = useState(0);
  const loads = useRunsByID(held.forms.map((r) => r.runId));
  const pending = loads.findIndex((l) => l.isPending);
  const update = () => {
    setHeld(refill(held, settled, waiting));
    setMoved(moved + 1);
  };
  const more = countMore(held, settled, waiting);
  if (held.forms.length === 0 && more > 0) update();
  const answered = held.forms.filter((r) => isSettled(r, settled)).length;
  const words = [more === 0 ? "" : more === 1 ? "1 more waits" : `${more} more wait`, answered === 0 ? "" : `${answered} answered`].filter((t) => t !== "");
  return (
    <>
      {held.forms.length === 0 ? null : (
        <div className="waiting-bar" role="status">
          {words.length === 0 ? null : <>{words.join(" · ")} <button type="button" className="button button-small" onClick={update}>Update the list</button></>}
        </div>
      )}
      {held.forms.slice(0, pending === -1 ? held.forms.length : pending).map((r) => (
        <WaitingRun key={`${r.runId}@${r.seq}`} run={r} moved={moved} onSettled={(seq) => setSettled((before) => new Map(before).set(r.runId, seq))} />
      ))}
      {pending === -1 ? null : <Skeleton rows={2} />}
      {held.rest.length > 0 ? <RunTable rows={held.rest.slice(0, mostRows).map(rowOf)} label="More runs that are waiting for a person" /> : null}
      {held.rest.length > mostRows ? <Link href="/runs?person=true">All runs that are waiting for a person</Link> : null}
    </>
  );
}
