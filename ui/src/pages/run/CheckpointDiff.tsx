import type { Schemas } from "../../api/client";
import { useCheckpointDiff } from "../../api/reads";
import { Failed, Skeleton } from "../../parts/States";
import { valueText } from "../../parts/values";

const words = { added: "Added", removed: "Removed", changed: "Changed" } as const;

/** Below this a checkpoint of a run says where the run stood. */
const ofTheRun = "/_run";

/** What differs between two checkpoints, value by value. */
export function CheckpointDiff({ id, from }: { id: string; from: string | undefined }) {
  const diff = useCheckpointDiff(id, from);
  if (diff.isPending) return <Skeleton rows={3} />;
  if (diff.isError) return <Failed error={diff.error} doing="compare the checkpoints" retry={() => void diff.refetch()} />;
  const { changes, more } = diff.data;
  if (changes.length === 0) return <p className="quiet">The two are equal.</p>;
  const place = changes.filter((c) => c.path.startsWith(ofTheRun));
  const variables = changes.filter((c) => !c.path.startsWith(ofTheRun));
  return (
    <div className="changes">
      {variables.length === 0 ? <p className="quiet">No variable changed.</p> : <Changes list={variables} />}
      {more === true ? <p className="quiet">Further changes are not shown.</p> : null}
      {place.length === 0 ? null : <details><summary>Position of the run ({place.length})</summary><Changes list={place} /></details>}
    </div>
  );
}

type Change = Schemas["CheckpointDiff"]["changes"][number];

function Changes({ list }: { list: Change[] }) {
  return (
    <ul className="changes">
      {list.map((c) => (
        <li key={c.path} data-op={c.op}>
          <span className="change-op">{words[c.op]}</span> <code>{c.path}</code>
          {c.op === "added" ? null : <pre className="change-before">− {valueText(c.before)}</pre>}
          {c.op === "removed" ? null : <pre className="change-after">+ {valueText(c.after)}</pre>}
        </li>
      ))}
    </ul>
  );
}
