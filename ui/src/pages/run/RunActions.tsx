import { useState } from "react";
import { useLocation } from "wouter";
import { useAbort, useFork } from "../../api/commands";
import type { Schemas } from "../../api/client";
import { exportRun, useMay } from "../../api/reads";
import { Ask } from "../../parts/Ask";
import { Export } from "../../parts/Export";
import { Failed } from "../../parts/States";
import { ResumeRun } from "./ResumeRun";

/** What a person can do with a run as a whole. */
export function RunActions({ run }: { run: Schemas["Run"] }) {
  const [, go] = useLocation();
  const fork = useFork(run.runId);
  const abort = useAbort(run.runId);
  const [reason, setReason] = useState("");
  const may = useMay("work");
  const ended = run.status === "completed" || run.status === "aborted";
  return (
    <div className="actions run-actions">
      {ended ? null : <ResumeRun runId={run.runId} />}
      <Export name="guideway-run.json" read={() => exportRun(run.runId)} />
      <button type="button" className="button" disabled={!may || fork.isPending} onClick={() => fork.mutate(undefined, { onSuccess: (a) => go(`/runs/${a.runId}`) })}>
        Fork
      </button>
      {ended ? null : (
        <Ask
          trigger={<button type="button" className="button" disabled={!may}>Abort</button>}
          title="Abort this run?" verb="Abort the run" onAgree={() => abort.mutate(reason)}
        >
          <p>It ends permanently. Its record stays, and you can fork it later.</p>
          <label className="field"><span>Reason (optional)</span><input type="text" value={reason} onChange={(e) => setReason(e.target.value)} /></label>
        </Ask>
      )}
      {fork.isError ? <Failed error={fork.error} doing="fork the run" /> : null}
      {abort.isError ? <Failed error={abort.error} doing="abort the run" /> : null}
    </div>
  );
}
