import { useId, useState } from "react";
import { useAnswerGate } from "../../api/commands";
import type { Schemas } from "../../api/client";
import { useMay } from "../../api/reads";
import { Failed } from "../../parts/States";
import { HandedIn } from "./HandedIn";
import "./position.css";

interface Props {
  runId: string;
  /** The number of the run's last event. */
  seq: number;
  handle: string;
  position: Schemas["Position"];
  status: string;
}

/** What the run asks for now; a gate is answered here. */
export function RunPosition({ runId, seq, handle, position, status }: Props) {
  if (position.kind === "end") return <section className="run-now" data-kind="end" aria-label="Where the run is"><p>The run is {status}.</p></section>;
  return (
    <section className="run-now" data-kind={position.kind} aria-label="Where the run is">
      <p className="quiet">{asks(position)}</p>
      <h2>{position.title}</h2>
      {position.message === undefined ? null : <p className="prose">{position.message}</p>}
      <Words title="Waits for" list={position.needs?.map(need)} />
      {position.kind === "gate" ? <HandedIn runId={runId} seq={seq} step={position.id} /> : null}
      <RunPrompt position={position} open={false} />
      {position.kind === "gate" ? <Gate key={handle} runId={runId} handle={handle} position={position} /> : null}
    </section>
  );
}

/** What the agent is told, and what its output must meet. */
export function RunPrompt({ position, open }: { position: Schemas["Position"]; open: boolean }) {
  const prompt = position.prompt === position.title ? undefined : position.prompt;
  if (prompt === undefined && position.criteria === undefined) return null;
  return (
    <details open={open}>
      <summary className="quiet">{position.criteria === undefined ? "Prompt" : `Prompt and ${position.criteria.length === 1 ? "1 criterion" : `${position.criteria.length} criteria`}`}</summary>
      {prompt === undefined ? null : <pre className="run-prompt">{prompt}</pre>}
      <Words title="Criteria" list={position.criteria} />
    </details>
  );
}

function asks(position: Schemas["Position"]): string {
  const phase = position.phase === undefined ? "" : `Phase ${position.phase.number} of ${position.phase.of} · `;
  const round = position.loop === undefined ? "" : ` · round ${position.loop.round}${position.loop.rounds === undefined ? "" : ` of ${position.loop.rounds}`}`;
  const kinds: Record<Schemas["PositionKind"], string> = {
    step: "The agent works on", gate: position.person === true ? "Waiting for you" : "Waits for an answer", context: "Waits for variables", end: "Ended",
  };
  return `${phase}${kinds[position.kind]}${round}`;
}

function need(n: Schemas["Need"]): string {
  const allowed = n.allowed === undefined ? "" : `: ${n.allowed.map((v) => JSON.stringify(v)).join(" or ")}`;
  return n.variable + (allowed !== "" ? allowed : n.tests === undefined ? "" : `: ${n.tests.join("; ")}`);
}

function Words({ title, list }: { title: string; list: string[] | undefined }) {
  if (list === undefined || list.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul className="bullets">{list.map((text) => <li key={text}>{text}</li>)}</ul>
    </div>
  );
}

/** What an option stands for where a gate can be declined. */
const declined = "(decline)";

/** The answers that a gate takes. The answer is for the position that was shown. */
export function Gate({ runId, handle, position }: Omit<Props, "status" | "seq">) {
  const answer = useAnswerGate(runId);
  const may = useMay("answer");
  const [option, setOption] = useState("");
  const [note, setNote] = useState("");
  const name = useId();
  const options = position.options ?? [];
  const chosen = options.find((o) => o.id === option);
  const send = () => answer.mutate({
    handle, ...(option === declined ? { decline: true } : { optionId: option }),
    ...(position.id === undefined ? {} : { stepId: position.id }), ...(note === "" ? {} : { note }),
  });
  return (
    <form className="gate" onSubmit={(e) => { e.preventDefault(); send(); }}>
      <fieldset>
        <legend className="visually-hidden">Your answer</legend>
        {options.map((o) => <Choice key={o.id} name={name} value={o.id} label={o.label} description={o.description} chosen={option} onChoose={setOption} />)}
        {position.declinable === true ? <Choice name={name} value={declined} label="Decline" description="Continue without an answer." chosen={option} onChoose={setOption} /> : null}
      </fieldset>
      <label className="gate-note"><span>Note (optional)</span><textarea rows={2} value={note} onChange={(e) => setNote(e.target.value)} /></label>
      <button type="submit" className="button button-main" disabled={!may || option === "" || answer.isPending}>
        {chosen === undefined ? (option === declined ? "Decline" : "Choose an answer") : `Answer: ${chosen.label}`}
      </button>
      {answer.isError ? <Failed error={answer.error} doing="answer the gate" /> : null}
    </form>
  );
}

interface ChoiceProps {
  name: string;
  value: string;
  label: string;
  description: string | undefined;
  chosen: string;
  onChoose: (value: string) => void;
}

function Choice({ name, value, label, description, chosen, onChoose }: ChoiceProps) {
  return (
    <label className="gate-option">
      <input type="radio" name={name} value={value} checked={chosen === value} onChange={() => onChoose(value)} />
      <span>{label}{description === undefined ? null : <span className="quiet"> {description}</span>}</span>
    </label>
  );
}
