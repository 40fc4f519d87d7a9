import { useState } from "react";
import type { Schemas } from "../../api/client";
import { Gate } from "./Gate";
import { gateKey } from "./gates";
import { RunPrompt, Words } from "./RunPrompt";
import "./position.css";

type Details = Schemas["RunDetails"];

/** What the run asks for now; a gate is answered here. A gate that was answered meanwhile stays until it is closed. */
export function RunPosition({ details, name }: { details: Details; name: string }) {
  const [gates, setGates] = useState<Details[]>([]);
  const key = gateKey(details);
  const isGate = details.position.kind === "gate";
  if (isGate && gates.every((g) => gateKey(g) !== key)) setGates([...gates.slice(-1), details]);
  return (
    <>
      {gates.map((g) => (
        <section key={gateKey(g)} className="run-now" data-kind="gate" aria-label={gateKey(g) === key ? "Where the run is" : "An answered gate"}>
          <Head position={g.position} />
          <Gate shown={g} current={details} name={name} folds onClose={() => setGates(gates.filter((other) => other !== g))} />
        </section>
      ))}
      {isGate ? null : <Ungated details={details} />}
    </>
  );
}

function Ungated({ details: { position, run } }: { details: Details }) {
  if (position.kind === "end") return <section className="run-now" data-kind="end" aria-label="Where the run is"><p>The run is {run.status}.</p></section>;
  return (
    <section className="run-now" data-kind={position.kind} aria-label="Where the run is">
      <Head position={position} />
      <RunPrompt position={position} open={false} />
    </section>
  );
}

function Head({ position }: { position: Schemas["Position"] }) {
  return (
    <>
      <p className="quiet">{asks(position)}</p>
      <h2>{position.title}</h2>
      {position.message === undefined ? null : <p className="prose">{position.message}</p>}
      <Words title="Waits for" list={position.needs?.map(need)} />
    </>
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
