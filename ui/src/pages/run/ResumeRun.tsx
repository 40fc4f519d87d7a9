import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";

/** Hands a run to an agent in a new conversation: a run is resumed by whoever works on it. */
export function ResumeRun({ runId }: { runId: string }) {
  const tell = useNotice();
  const words = `Resume the Guideway run ${runId}: call workflow_resume with {"runId": "${runId}"} and continue from the position that it returns.`;
  const copy = () => navigator.clipboard.writeText(words).then(() => tell({ text: "Copied. Paste it to your agent." }), () => tell({ text: "The browser refused to copy it. Select the text and copy it.", failed: true }));
  return (
    <Ask trigger={<button type="button" className="button">Resume…</button>} title="Resume this run" verb="Copy the prompt" onAgree={() => void copy()}>
      <p>An agent can continue the run in any conversation with Guideway. Give it this prompt:</p>
      <p className="mono resume-words">{words}</p>
    </Ask>
  );
}
