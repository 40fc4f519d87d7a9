import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useRunCheckpoints } from "../../api/reads";
import { bytes } from "../../parts/sizes";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { When } from "../../parts/When";
import { CheckpointDiff } from "./CheckpointDiff";

/** The checkpoints of a run's context as a timeline, and what differs between two. */
export function Checkpoints({ runId }: { runId: string }) {
  const kept = useRunCheckpoints(runId);
  const [to, setTo] = useState<string | undefined>();
  const [from, setFrom] = useState("");
  if (kept.isPending) return <Skeleton />;
  if (kept.isError) return <Failed error={kept.error} doing="read the checkpoints" retry={() => void kept.refetch()} />;
  const list = kept.data.checkpoints;
  if (list.length === 0) {
    return <Empty title="No checkpoints yet">A checkpoint stores the context of a run. One is saved at the end of a phase or loop, at gates and at the end, or by <code>workflow_checkpoint_save</code>.</Empty>;
  }
  const chosen = list.find((c) => c.checkpointId === to) ?? list[0];
  return (
    <div className="checkpoints">
      <ol className="checkpoint-line" aria-label="Checkpoints, the newest first">
        {list.map((c) => <Row key={c.checkpointId} checkpoint={c} chosen={c === chosen} onChoose={() => { setTo(c.checkpointId); setFrom(""); }} />)}
      </ol>
      {chosen === undefined ? null : (
        <section aria-labelledby="differs" className="checkpoint-diff">
          <h3 id="differs">What changed up to {nameOf(chosen)}</h3>
          <label className="field">
            <span>Compared with</span>
            <select value={from} onChange={(e) => setFrom(e.target.value)}>
              <option value="">the previous checkpoint</option>
              {list.filter((c) => c !== chosen).map((c) => <option key={c.checkpointId} value={c.checkpointId}>{nameOf(c)}</option>)}
            </select>
          </label>
          {from === "" && chosen.parentId === undefined ? <p className="quiet">It is the first checkpoint.</p> : <CheckpointDiff id={chosen.checkpointId} from={from === "" ? undefined : from} />}
        </section>
      )}
    </div>
  );
}

function nameOf(c: Schemas["Checkpoint"]): string {
  return c.name === undefined || c.name === "" ? `checkpoint ${c.number}` : `${c.name} (${c.number})`;
}

function Row({ checkpoint: c, chosen, onChoose }: { checkpoint: Schemas["Checkpoint"]; chosen: boolean; onChoose: () => void }) {
  return (
    <li>
      <button type="button" className="checkpoint" aria-pressed={chosen} onClick={onChoose}>
        <span className="checkpoint-dot" aria-hidden="true">{c.head ? "●" : "○"}</span>
        <span className="checkpoint-name">{nameOf(c)}{c.branch === true ? " · a branch" : ""}</span>
        <span className="quiet">{c.kind === "auto" ? "automatic" : "saved"}{c.runSeq === undefined ? "" : ` at event ${c.runSeq}`}</span>
        <span className="quiet number">{bytes(c.bytes)}, stored in {bytes(c.storedBytes)} · <When at={c.createdAt} /></span>
      </button>
      {c.error === undefined ? null : <p className="checkpoint-problem">It could not be read: {c.error}</p>}
    </li>
  );
}
