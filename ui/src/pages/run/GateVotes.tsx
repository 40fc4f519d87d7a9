import type { Schemas } from "../../api/client";
import { wordsOf } from "./gates";

interface Props {
  position: Schemas["Position"];
  /** The user of this browser. */
  me: string | undefined;
}

/** The persons that a gate needs, and the answers so far. */
export function GateVotes({ position, me }: Props) {
  const { approval, votes = [] } = position;
  if (approval === undefined) return null;
  const labelOf = (id: string) => position.options?.find((o) => o.id === id)?.label ?? id;
  return (
    <div className="gate-votes">
      <p className="quiet">{wordsOf(approval)}</p>
      {votes.length === 0 ? null : (
        <ul aria-label="Answers so far" className="bullets">
          {votes.map((v) => <li key={v.user}>{v.user}{v.user === me ? " (you)" : ""}: {labelOf(v.option)}</li>)}
        </ul>
      )}
    </div>
  );
}
