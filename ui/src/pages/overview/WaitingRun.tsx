import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useRun } from "../../api/reads";
import { When } from "../../parts/When";
import { Gate } from "../run/Gate";

interface Props {
  run: Schemas["Run"];
  /** Changes when the forms above it have changed. */
  moved: number;
  /** Is called with the number of the run's last event when the gate was answered. */
  onSettled: (seq: number) => void;
}

/** A run that waits for a person, with its gate to be answered in place. The answered gate stays. */
export function WaitingRun({ run, moved, onSettled }: Props) {
  const { data: current } = useRun(run.runId);
  const [shown, setShown] = useState<Schemas["RunDetails"]>();
  if (shown === undefined && current?.position.kind === "gate") setShown(current);
  const goal = run.goal === undefined || run.goal === "" ? run.workflowName : run.goal;
  return (
    <article className="waiting" aria-label={goal}>
      <header className="waiting-head">
        <h3><Link href={`/runs/${run.runId}`}>{goal}</Link></h3>
        <span className="quiet">{run.workflowName} · <When at={run.updatedAt} /></span>
      </header>
      {shown === undefined || current === undefined ? null : (
        <>
          <p className="prose"><strong>{shown.position.title}</strong>{shown.position.message === undefined ? "" : `: ${shown.position.message}`}</p>
          <Gate shown={shown} current={current} name={goal} moved={moved} onSettled={onSettled} />
        </>
      )}
    </article>
  );
}
