import { useCheckpointDiff } from "../../api/reads";
import { Failed, Skeleton } from "../../parts/States";

const words = { added: "Added", removed: "Removed", changed: "Changed" } as const;

/** What differs between two checkpoints, value by value. */
export function CheckpointDiff({ id, from }: { id: string; from: string | undefined }) {
  const diff = useCheckpointDiff(id, from);
  if (diff.isPending) return <Skeleton rows={3} />;
  if (diff.isError) return <Failed error={diff.error} doing="compare the checkpoints" retry={() => void diff.refetch()} />;
  if (diff.data.changes.length === 0) return <p className="quiet">Nothing: the two are the same.</p>;
  return (
    <ul className="changes">
      {diff.data.changes.map((c) => (
        <li key={c.path} data-op={c.op}>
          <span className="change-op">{words[c.op]}</span> <code>{c.path}</code>
          {c.op === "added" ? null : <pre className="change-before">− {textOf(c.before)}</pre>}
          {c.op === "removed" ? null : <pre className="change-after">+ {textOf(c.after)}</pre>}
        </li>
      ))}
      {diff.data.more === true ? <li className="quiet">There are more than these.</li> : null}
    </ul>
  );
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 1);
}
