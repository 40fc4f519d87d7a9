import { Link } from "wouter";
import { useRuns } from "../../api/reads";
import { Failed, Skeleton } from "../../parts/States";
import { NoRuns } from "../runs/RunsPage";
import { RunTable } from "../runs/RunTable";

/** What needs a person first, then what is under way. */
export function OverviewPage() {
  const waiting = useRuns({ person: true });
  const recent = useRuns({});
  const gates = waiting.data?.pages[0]?.runs ?? [];
  const runs = recent.data?.pages[0]?.runs.slice(0, 12) ?? [];
  return (
    <>
      <h1 className="visually-hidden">Overview</h1>
      <section className="section" aria-labelledby="waits">
        <h2 id="waits">Waits for you</h2>
        {waiting.isPending ? <Skeleton rows={2} /> : null}
        {waiting.isSuccess && gates.length === 0 ? <p className="quiet">Nothing waits for a person.</p> : null}
        {gates.length > 0 ? <RunTable runs={gates} label="Runs that wait for a person" /> : null}
      </section>
      <section className="section" aria-labelledby="recent">
        <div className="section-head"><h2 id="recent">Recent runs</h2><Link href="/runs">All runs</Link></div>
        {recent.isPending ? <Skeleton /> : null}
        {recent.isError ? <Failed error={recent.error} doing="read the runs" retry={() => void recent.refetch()} /> : null}
        {recent.isSuccess && runs.length === 0 ? <NoRuns /> : null}
        {runs.length > 0 ? <RunTable runs={runs} label="Recent runs" /> : null}
      </section>
    </>
  );
}
