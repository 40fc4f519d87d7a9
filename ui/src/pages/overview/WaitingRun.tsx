import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useRun } from "../../api/reads";
import { Skeleton } from "../../parts/States";
import { When } from "../../parts/When";
import { HandedIn } from "../run/HandedIn";
import { Gate, RunPrompt } from "../run/RunPosition";

/** A run that waits for a person, with its gate to be answered in place. */
export function WaitingRun({ run }: { run: Schemas["Run"] }) {
  const details = useRun(run.runId);
  const position = details.data?.position;
  const goal = run.goal === undefined || run.goal === "" ? run.workflowName : run.goal;
  return (
    <article className="waiting" aria-label={goal}>
      <header className="waiting-head">
        <h3><Link href={`/runs/${run.runId}`}>{goal}</Link></h3>
        <span className="quiet">{run.workflowName} · <When at={run.updatedAt} /></span>
      </header>
      {details.isPending ? <Skeleton rows={2} /> : null}
      {position?.kind === "gate" ? (
        <>
          <p className="prose"><strong>{position.title}</strong>{position.message === undefined ? "" : `: ${position.message}`}</p>
          <HandedIn runId={run.runId} seq={details.data?.run.seq ?? run.seq} step={position.id} />
          <RunPrompt position={position} open={false} />
          <Gate key={details.data?.handle} runId={run.runId} handle={details.data?.handle ?? ""} position={position} />
        </>
      ) : null}
    </article>
  );
}
