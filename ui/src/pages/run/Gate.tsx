import { useEffect, useId, useState } from "react";
import { useAnswerGate } from "../../api/commands";
import type { Schemas } from "../../api/client";
import { useAnswered, useMay, useMe } from "../../api/reads";
import { Failed } from "../../parts/States";
import { useReady } from "../../parts/useReady";
import { gateKey, obstacle } from "./gates";
import { GateVotes } from "./GateVotes";
import { HandedIn, isFolded } from "./HandedIn";
import { RunPrompt } from "./RunPrompt";

interface Props {
  /** The run when the gate was first shown. The form stays at this gate. */
  shown: Schemas["RunDetails"];
  current: Schemas["RunDetails"];
  /** The name of the run, for the button. */
  name: string;
  /** Changes when the form was moved: a form that has just moved accepts no click. */
  moved?: number;
  /** Has an answered form without a draft fold to a line. */
  folds?: boolean;
  onSettled?: (seq: number) => void;
  onClose?: () => void;
}

/** The option of a gate that can be declined. */
const declined = "(decline)";

/** The output under approval and the answers that the gate takes. A form that another person answered keeps its draft. */
export function Gate({ shown, current, name, moved = 0, folds = false, onSettled, onClose }: Props) {
  const { position, submission } = shown;
  const runId = shown.run.runId;
  const answer = useAnswerGate(runId);
  const may = useMay("answer");
  const me = useMe().data;
  const isReady = useReady(moved);
  const [option, setOption] = useState("");
  const [note, setNote] = useState("");
  const [isOpen, setOpen] = useState(!isFolded(submission));
  const isSettled = gateKey(shown) !== gateKey(current);
  const seq = current.run.seq;
  useEffect(() => {
    if (isSettled) onSettled?.(seq);
  }, [isSettled]); // the number of the first event is the answer's
  const outcome = useOutcome(shown, current, isSettled, answer.isSuccess);
  const reason = isSettled ? undefined : obstacle(current.position, me, option);
  const label = option === declined ? "Decline" : position.options?.find((o) => o.id === option)?.label;
  const hasDraft = !answer.isSuccess && (note !== "" || option !== "");
  const close = onClose === undefined || !isSettled ? null : <button type="button" className="button button-small" onClick={onClose}>Close</button>;
  if (isSettled && folds && !hasDraft) return <div className="gate-outcome" role="status">{outcome} {close}</div>;
  const send = () => {
    if (!isReady || !isOpen || isSettled) return;
    answer.mutate({
      handle: current.handle ?? "", ...(option === declined ? { decline: true } : { optionId: option }),
      ...(position.id === undefined ? {} : { stepId: position.id }), ...(note === "" ? {} : { note }),
    });
  };
  return (
    <>
      <HandedIn submission={submission} isOpen={isOpen} onOpen={() => setOpen(true)} />
      <RunPrompt position={position} open={false} />
      <form className="gate" onSubmit={(e) => { e.preventDefault(); send(); }}>
        <GateVotes position={current.position} me={me?.user} />
        <Choices position={position} disabled={isSettled || !isReady} chosen={option} onChoose={setOption} />
        <label className="gate-note"><span>Note (optional)</span><textarea rows={2} value={note} readOnly={isSettled} onChange={(e) => setNote(e.target.value)} /></label>
        <div className="gate-end">
          {isSettled ? <p className="gate-outcome" role="status">{outcome} {hasDraft ? "Your draft was not sent." : null} {close}</p> : (
            <button type="submit" className="button button-main gate-send" disabled={!may || reason !== undefined || !isReady || !isOpen || label === undefined || answer.isPending || answer.isSuccess}>
              <span>{label === undefined ? "Choose an answer" : `${label}: ${name}`}</span>
            </button>
          )}
          {reason === undefined ? null : <p className="quiet" role="status">{reason}</p>}
          {isOpen ? null : <p className="quiet">Show the whole output before you answer.</p>}
        </div>
        {answer.isError && !isSettled ? <Failed error={answer.error} doing="answer the gate" /> : null}
      </form>
    </>
  );
}

/** Returns who answered the gate. */
function useOutcome(shown: Schemas["RunDetails"], current: Schemas["RunDetails"], isSettled: boolean, mine: boolean): string {
  const answered = useAnswered(shown.run.runId, shown.run.seq, current.run.seq, shown.position.options, isSettled && !mine);
  return mine ? "You answered this gate." : answered.data ?? "This gate was answered.";
}

interface ChoicesProps {
  position: Schemas["Position"];
  disabled: boolean;
  chosen: string;
  onChoose: (value: string) => void;
}

function Choices({ position, disabled, chosen, onChoose }: ChoicesProps) {
  const name = useId();
  const choice = (id: string, label: string, description: string | undefined) => (
    <label key={id} className="gate-option">
      <input type="radio" name={name} value={id} checked={chosen === id} onChange={() => onChoose(id)} />
      <span>{label}{description === undefined ? null : <span className="quiet"> {description}</span>}</span>
    </label>
  );
  return (
    <fieldset disabled={disabled}>
      <legend className="visually-hidden">Your answer</legend>
      {position.options?.map((o) => choice(o.id, o.label, o.description))}
      {position.declinable === true ? choice(declined, "Decline", "Continue without an answer.") : null}
    </fieldset>
  );
}
