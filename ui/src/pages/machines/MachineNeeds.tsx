import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useMachineCommand, type MachineCommand } from "../../api/machines";
import { useMay } from "../../api/reads";
import { useNotice } from "../../parts/Notice";
import { useReady } from "../../parts/useReady";

type Run = Schemas["MachineStatus"];

/** What a run needs of a person: a value, a word on what became of a call, or to go on. */
export function MachineNeeds({ run }: { run: Run }) {
  const command = useMachineCommand(run.runId);
  const asking = askingIn(run);
  const isReady = useReady(asking?.asks === undefined ? run.pause?.message : asking.question);
  const busy = !useMay("answer") || command.isPending || !isReady;
  const tell = useNotice();
  const send = (c: MachineCommand) => command.mutate(c, { onError: (e) => tell({ text: e.message, failed: true }) });
  if (asking?.asks !== undefined) return <Question key={asking.question} asks={asking.asks} busy={busy} onAnswer={(value) => send({ do: "input", body: { ...named(asking), value } })} />;
  if (run.pause === undefined) return null;
  const { pause } = run;
  if (pause.code === "unknown_outcome") {
    return (
      <section className="machine-needs" aria-label="Needs input">
        <h2>Was it carried out?</h2>
        <p className="prose">{pause.message}. Check what it did, and report it.</p>
        <div className="machine-start">
          <button type="button" className="button" disabled={busy} onClick={() => send({ do: "input", body: { ...named(run), outcome: "done" } })}>It was done</button>
          <button type="button" className="button" disabled={busy} onClick={() => send({ do: "input", body: { ...named(run), outcome: "failed" } })}>It failed</button>
          <button type="button" className="button" disabled={busy} onClick={() => send({ do: "input", body: { ...named(run), outcome: "retry" } })}>Call it again</button>
        </div>
      </section>
    );
  }
  const raised = raise(pause);
  return (
    <section className="machine-needs" aria-label="Needs input">
      <h2>Paused</h2>
      <p className="prose">{pause.message}</p>
      {pause.fix === undefined ? null : <p className="quiet prose">{pause.fix}</p>}
      <button type="button" className="button button-main" disabled={busy} onClick={() => send({ do: "resume", body: raised.limits })}>{raised.verb}</button>
      {pause.code === "tools" ? <button type="button" className="button" disabled={busy} onClick={() => send({ do: "resume", body: { acceptTools: true } })}>Accept the present tools</button> : null}
    </section>
  );
}

/** The run that asks: the one itself, or one within it. */
function askingIn(run: Run | undefined): Run | undefined {
  if (run === undefined || run.asks !== undefined) return run;
  return askingIn(run.child);
}

/** The question that the page shows, so that the answer cannot reach another one. */
function named(asking: Run): { question?: string } {
  return asking.question === undefined ? {} : { question: asking.question };
}

/** A budget that is used up is doubled. */
function raise(pause: Schemas["MachinePause"]): { limits: Schemas["MachineLimits"]; verb: string } {
  if (pause.code !== "budget" || pause.limit === undefined) return { limits: {}, verb: "Try again" };
  const name = pause.budget === "time" ? "millis" : pause.budget ?? "states";
  return { limits: { [name]: pause.limit * 2 }, verb: `Continue with up to ${(pause.limit * 2).toLocaleString()}` };
}

function Question({ asks, busy, onAnswer }: { asks: Schemas["MachineAsked"]; busy: boolean; onAnswer: (value: string) => void }) {
  const [value, setValue] = useState("");
  return (
    <section className="machine-needs" aria-label="Needs input">
      <h2>{asks.description}</h2>
      {asks.show === undefined ? null : (typeof asks.show === "string" ? <p className="prose machine-shown">{asks.show}</p> : <pre>{JSON.stringify(asks.show, null, 2)}</pre>)}
      {asks.options === undefined ? (
        <form className="machine-start" onSubmit={(e) => { e.preventDefault(); onAnswer(value); }}>
          <label className="field"><span>{asks.name}</span><input type="text" value={value} onChange={(e) => setValue(e.target.value)} /></label>
          <button type="submit" className="button button-main" disabled={busy}>Submit</button>
        </form>
      ) : (
        <div className="machine-start">
          {asks.options.map((o) => <button key={o} type="button" className="button" disabled={busy} onClick={() => onAnswer(o)}>{o}</button>)}
        </div>
      )}
    </section>
  );
}
