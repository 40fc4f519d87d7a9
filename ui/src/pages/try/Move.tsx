import { useState } from "react";
import type { Schemas } from "../../api/client";
import { RunPrompt } from "../run/RunPrompt";

interface Props {
  at: Schemas["Trial"];
  busy: boolean;
  onMove: (move: Schemas["TryMove"]) => void;
}

/** What the position asks for, and a form to hand it in. */
export function Move({ at, busy, onMove }: Props) {
  const { position, refused } = at;
  if (position.kind === "end") return <section className="run-now" aria-label="Where the trial is"><h2>The end</h2><p>The workflow is {at.status}, after {at.events.length} events.</p></section>;
  return (
    <section className="run-now" data-kind={position.kind} aria-label="Where the trial is">
      <p className="quiet">{position.kind === "gate" ? "Waits for an answer" : position.kind === "context" ? "Waits for variables" : "Asks for an output"}{position.loop === undefined ? "" : ` · round ${position.loop.round}`}</p>
      <h2>{position.title}</h2>
      {position.message === undefined ? null : <p className="prose">{position.message}</p>}
      {position.needs === undefined ? null : <ul className="bullets">{position.needs.map((n) => <li key={n.variable}><code>{n.variable}</code>{n.allowed === undefined ? "" : `: ${n.allowed.map((v) => JSON.stringify(v)).join(" or ")}`}{n.tests === undefined ? "" : `: ${n.tests.join("; ")}`}</li>)}</ul>}
      <RunPrompt position={position} open={position.kind === "step"} />
      {refused === undefined ? null : (
        <div role="alert" className="try-refused">
          <strong>Refused: {refused.message}</strong> <code>{refused.rule}</code>
          {refused.issues === undefined ? null : <ul className="bullets">{refused.issues.map((i) => <li key={i}>{i}</li>)}</ul>}
        </div>
      )}
      {position.kind === "gate" ? <Answers position={position} busy={busy} onMove={onMove} /> : <HandIn needsOutput={position.kind === "step"} busy={busy} onMove={onMove} />}
    </section>
  );
}

function Answers({ position, busy, onMove }: { position: Schemas["Position"]; busy: boolean; onMove: Props["onMove"] }) {
  return (
    <div className="actions">
      {(position.options ?? []).map((o) => <button key={o.id} type="button" className="button" title={o.description} disabled={busy} onClick={() => onMove({ optionId: o.id })}>{o.label}</button>)}
      {position.declinable === true ? <button type="button" className="button" disabled={busy} onClick={() => onMove({ decline: true })}>Decline</button> : null}
    </div>
  );
}

function HandIn({ needsOutput, busy, onMove }: { needsOutput: boolean; busy: boolean; onMove: Props["onMove"] }) {
  const [output, setOutput] = useState("");
  const [notes, setNotes] = useState("");
  const [variables, setVariables] = useState("");
  const context = readObject(variables);
  const wrong = variables.trim() !== "" && context === undefined;
  return (
    <form className="try-form" onSubmit={(e) => { e.preventDefault(); onMove({ ...(output === "" ? {} : { output }), ...(notes === "" ? {} : { notes }), ...(context === undefined ? {} : { context }) }); }}>
      {needsOutput ? <label className="field"><span>Output</span><textarea rows={4} value={output} onChange={(e) => setOutput(e.target.value)} /></label> : null}
      {needsOutput ? <label className="field"><span>Notes</span><textarea rows={2} value={notes} onChange={(e) => setNotes(e.target.value)} /></label> : null}
      <label className="field">
        <span>Variables, as a JSON object</span>
        <textarea rows={2} className="mono" value={variables} placeholder='{"size": "small"}' aria-invalid={wrong} onChange={(e) => setVariables(e.target.value)} />
      </label>
      {wrong ? <p className="try-refused">This is not a JSON object.</p> : null}
      <button type="submit" className="button button-main" disabled={busy || wrong}>Submit</button>
    </form>
  );
}

function readObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
