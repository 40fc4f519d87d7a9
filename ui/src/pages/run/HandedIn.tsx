import { useHandedIn } from "../../api/reads";

/** What the agent has handed in for the step that a gate is about. */
export function HandedIn({ runId, seq, step }: { runId: string; seq: number; step: string | undefined }) {
  const { data } = useHandedIn(runId, seq, step);
  if (data === undefined || data === null || (data.output === "" && data.notes === "")) return null;
  return (
    <div className="handed-in">
      <h3>Output</h3>
      {data.output === "" ? null : <pre tabIndex={0}>{data.output}</pre>}
      {data.notes === "" ? null : <><h3>Notes</h3><pre tabIndex={0}>{data.notes}</pre></>}
    </div>
  );
}
