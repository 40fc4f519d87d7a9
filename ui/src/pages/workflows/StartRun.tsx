import { useState } from "react";
import { useLocation } from "wouter";
import { useStart } from "../../api/commands";
import { useMay } from "../../api/reads";
import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";

/** Starts a run of a workflow. An agent goes on with it by its id or its goal. */
export function StartRun({ workflowId, name }: { workflowId: string; name: string }) {
  const [goal, setGoal] = useState("");
  const [, go] = useLocation();
  const tell = useNotice();
  const start = useStart();
  const may = useMay("work");
  const begin = () => start.mutate({ workflowId, ...(goal.trim() === "" ? {} : { goal: goal.trim() }) }, {
    onSuccess: (made) => go(`/runs/${made.runId}`),
    onError: (error) => tell({ text: `Could not start a run: ${error.message}`, failed: true }),
  });
  return (
    <Ask trigger={<button type="button" className="button button-main" disabled={!may || start.isPending}>Start a run</button>} title={`Start a run of ${name}`} verb="Start the run" onAgree={begin}>
      <p>An agent continues it with <code>workflow_resume</code> and words of the goal.</p>
      <label className="field"><span>Goal</span><input type="text" value={goal} onChange={(e) => setGoal(e.target.value)} autoFocus /></label>
    </Ask>
  );
}
