import { useState } from "react";
import { useLocation } from "wouter";
import type { Schemas } from "../../api/client";
import { useStartMachine } from "../../api/machines";
import { useMay } from "../../api/reads";
import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";

/** Starts a run of a machine, with what it begins with, or its demonstration. */
export function StartMachine({ machine }: { machine: Schemas["MachineInfo"] }) {
  const [inputs, setInputs] = useState<Record<string, string>>({});
  const [, go] = useLocation();
  const tell = useNotice();
  const start = useStartMachine();
  const may = useMay("work");
  const begin = (demo: boolean) => start.mutate({ machine: machine.name, demo, inputs: demo ? {} : filled(inputs) }, {
    onSuccess: (made) => go(`/machine-runs/${made.run.runId}`),
    onError: (error) => tell({ text: `Could not start the machine: ${error.message}`, failed: true }),
  });
  return (
    <div className="machine-start">
      {machine.demo ? <button type="button" className="button" disabled={!may || start.isPending} onClick={() => begin(true)}>Run the demonstration</button> : null}
      <Ask trigger={<button type="button" className="button button-main" disabled={!may || start.isPending}>Start</button>} title={`Start ${machine.name}`} verb="Start the machine" onAgree={() => begin(false)}>
        <p>Its agents use the models of <code>guideway.json</code>.</p>
        {machine.inputs.map((input) => (
          <label key={input.name} className="field">
            <span>{input.description}{input.required === true ? "" : " (optional)"}</span>
            {input.options === undefined
              ? <textarea rows={2} value={inputs[input.name] ?? ""} onChange={(e) => setInputs({ ...inputs, [input.name]: e.target.value })} />
              : (
                <select value={inputs[input.name] ?? ""} onChange={(e) => setInputs({ ...inputs, [input.name]: e.target.value })}>
                  <option value="">Choose</option>
                  {input.options.map((o) => <option key={o} value={o}>{o}</option>)}
                </select>
              )}
          </label>
        ))}
      </Ask>
    </div>
  );
}

/** The inputs that were given. A text that stands for another type is read by the server. */
function filled(inputs: Record<string, string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(inputs).filter(([, value]) => value.trim() !== ""));
}
