import { Link } from "wouter";
import { useCalls } from "../../api/calls";
import { useUpstreams } from "../../api/gateway";
import { useHooks } from "../../api/hooks";
import { useMachineRuns } from "../../api/machines";
import { useCatalog, useCheckpointHealth, useRuns, useSessions, useWaitingRuns } from "../../api/reads";
import { Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { CallTable } from "../calls/CallsPage";
import { NoRuns } from "../runs/RunsPage";
import { rowOf, RunTable } from "../runs/RunTable";
import { SessionCard } from "../sessions/SessionCard";
import { Upstreams } from "./Upstreams";
import { WaitingApprovals } from "./WaitingApprovals";
import { WaitingMachines } from "./WaitingMachines";
import { WaitingGates } from "./WaitingGates";
import "./overview.css";

/** What needs a person first, then what is under way. */
export function OverviewPage() {
  useTitle("");
  return (
    <>
      <h1 className="visually-hidden">Overview</h1>
      <Waiting />
      <Upstreams />
      <Recent />
      <Sessions />
      <Trouble />
    </>
  );
}

function Waiting() {
  const waiting = useWaitingRuns();
  const runs = waiting.data ?? [];
  const machines = useMachineRuns();
  const asking = (machines.data?.pages ?? []).flatMap((p) => p.runs).filter((r) => r.person === true || r.status === "paused").reverse();
  const upstreams = useUpstreams();
  const held = upstreams.data?.on === true ? upstreams.data.upstreams.filter((u) => u.waiting > 0) : [];
  const changed = (useHooks().data?.graphs ?? []).filter((h) => h.state === "changed");
  const calls = useCalls("waiting");
  const waitingCalls = calls.data?.calls ?? [];
  const count = runs.length + waitingCalls.length + asking.length + held.length + changed.length;
  return (
    <section className="section" aria-labelledby="waits">
      <h2 id="waits">Waiting for you {count > 0 ? <span className="quiet">{count}</span> : null}</h2>
      {waiting.isPending ? <Skeleton rows={2} /> : null}
      <WaitingGates waiting={runs} />
      {waiting.isSuccess && machines.isSuccess && count === 0 ? <p className="quiet">Nothing is waiting for you.</p> : null}
      {waitingCalls.length > 0 ? <CallTable list={waitingCalls} /> : null}
      <WaitingMachines runs={asking} />
      <WaitingApprovals upstreams={held} hooks={changed} />
      {waiting.isError ? <Failed error={waiting.error} doing="read what is waiting for you" retry={() => void waiting.refetch()} /> : null}
      {machines.isError ? <Failed error={machines.error} doing="read the machines that are waiting for you" retry={() => void machines.refetch()} /> : null}
    </section>
  );
}

function Recent() {
  const recent = useRuns({});
  const runs = recent.data?.pages[0]?.runs.slice(0, 12) ?? [];
  return (
    <section className="section" aria-labelledby="recent">
      <div className="section-head"><h2 id="recent">Recent runs</h2><Link href="/runs">All runs</Link></div>
      {recent.isPending ? <Skeleton /> : null}
      {recent.isError ? <Failed error={recent.error} doing="read the runs" retry={() => void recent.refetch()} /> : null}
      {recent.isSuccess && runs.length === 0 ? <NoRuns /> : null}
      {runs.length > 0 ? <RunTable rows={runs.map(rowOf)} label="Recent runs" /> : null}
    </section>
  );
}

function Sessions() {
  const sessions = useSessions();
  const list = sessions.data?.sessions.slice(0, 4) ?? [];
  if (list.length === 0) return null;
  return (
    <section className="section" aria-labelledby="sessions">
      <div className="section-head"><h2 id="sessions">Sessions</h2><Link href="/sessions">All sessions</Link></div>
      <ul className="cards">{list.map((s) => <li key={`${s.projectId}/${s.workflowId}/${s.id}`}><SessionCard session={s} /></li>)}</ul>
    </section>
  );
}

/** What is wrong with the installation; nothing where all is well. */
function Trouble() {
  const catalog = useCatalog();
  const kept = useCheckpointHealth();
  const broken = new Set(catalog.data?.diagnostics.map((d) => d.file)).size;
  const failed = catalog.data?.sources.filter((s) => s.state === "failed") ?? [];
  const store = kept.data?.store;
  const save = kept.data?.automatic.error;
  if (broken === 0 && failed.length === 0 && store?.note === undefined && save === undefined) return null;
  return (
    <section className="section" aria-labelledby="trouble">
      <h2 id="trouble">Needs attention</h2>
      <ul className="bullets">
        {broken > 0 ? <li><Link href="/workflows">{broken === 1 ? "One definition does not load" : `${broken} definitions do not load`}</Link></li> : null}
        {failed.map((s) => <li key={s.name}>The source {s.name} cannot be read: {s.error}</li>)}
        {store?.note === undefined ? null : <li>Checkpoints are stored in the mode {store.mode}: {store.note}</li>}
        {save === undefined ? null : <li>The last automatic checkpoint was not saved: {save}</li>}
      </ul>
    </section>
  );
}
