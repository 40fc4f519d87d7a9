import { Link } from "wouter";
import { useMachineRuns, useMachines } from "../../api/machines";
import type { Schemas } from "../../api/client";
import { LongTable } from "../../parts/LongTable";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import { StartMachine } from "./StartMachine";
import "./machines.css";

/** The runs of agent machines, and the machines that can be started. */
export function MachinesPage() {
  useTitle("Machines");
  return (
    <>
      <section className="section">
        <div className="section-head"><h1>Machines</h1><a href="#start">Start a machine</a></div>
        <Runs />
      </section>
      <section className="section" id="start">
        <h2>Start a machine</h2>
        <Definitions />
      </section>
    </>
  );
}

function Runs() {
  const runs = useMachineRuns();
  if (runs.isPending) return <Skeleton rows={6} />;
  if (runs.isError) return <Failed error={runs.error} doing="read the runs of machines" retry={() => void runs.refetch()} />;
  const [first, ...older] = runs.data.pages;
  const rows = [...[...first?.runs ?? []].sort((a, b) => forYou(b) - forYou(a)), ...older.flatMap((p) => p.runs)];
  if (rows.length === 0) {
    return <Empty title="No machine has run yet">A machine leads several agents through states. Run a demonstration below; it needs no key.</Empty>;
  }
  const head = <><th scope="col">Status</th><th scope="col">Machine</th><th scope="col">State</th><th scope="col" className="number">Changed</th></>;
  return (
    <>
      <LongTable label="Runs of machines" className="compact machine-runs" head={head} columns={4} rows={rows} keyOf={(r) => r.runId}>
        {(r) => (
          <>
            <td data-label="Status"><Status word={r.status} />{r.person === true ? <span className="for-you">&nbsp;for you</span> : null}</td>
            <td data-label="Machine" data-main><Link href={`/machine-runs/${r.runId}`}>{r.goal === undefined || r.goal === "" ? r.machine : `${r.machine}: ${r.goal}`}</Link></td>
            <td data-label="State">{r.status === "completed" ? "" : r.state}</td>
            <td data-label="Changed" data-end className="number"><When at={r.updatedAt} /></td>
          </>
        )}
      </LongTable>
      {runs.hasNextPage ? <button type="button" className="button" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>Show older runs</button> : null}
    </>
  );
}

/** What waits for a person comes first among the newest; what is read later stays below. */
function forYou(run: { person?: boolean }): number {
  return run.person === true ? 1 : 0;
}

function Definitions() {
  const machines = useMachines();
  if (machines.isPending) return <Skeleton rows={3} />;
  if (machines.isError) return <Failed error={machines.error} doing="read the machines" retry={() => void machines.refetch()} />;
  if (machines.data.machines.length === 0) {
    return <Empty title="There are no machines here">Create one with <code>guideway init --dialect machines</code>.</Empty>;
  }
  return (
    <ul className="machine-list">
      {machines.data.machines.map((m) => <Definition key={`${m.source} ${m.name}`} machine={m} />)}
    </ul>
  );
}

function Definition({ machine }: { machine: Schemas["MachineInfo"] }) {
  if (machine.error !== undefined) {
    return <li><div><h3>{machine.name}</h3><p className="prose" role="note">It does not load: {machine.error}</p><p className="mono quiet">{machine.path}</p></div></li>;
  }
  return (
    <li>
      <div>
        <h3><Link href={`/machines/${encodeURIComponent(machine.name)}`}>{machine.name}</Link></h3>
        <p className="prose">{machine.description}</p>
        <p className="quiet">{machine.agents.join(", ")} · {machine.states} states · {machine.source}</p>
      </div>
      <StartMachine machine={machine} />
    </li>
  );
}
