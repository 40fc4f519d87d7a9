import { useSearchParams } from "wouter";
import { useRuns } from "../../api/reads";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { RunTable } from "./RunTable";

/** All runs, with what narrows them in the address. */
export function RunsPage() {
  const [search] = useSearchParams();
  const person = search.get("person") === "true";
  const runs = useRuns(person ? { person } : {});
  const list = runs.data?.pages.flatMap((p) => p.runs) ?? [];
  return (
    <section className="section">
      <h1>Runs</h1>
      {runs.isPending ? <Skeleton /> : null}
      {runs.isError ? <Failed error={runs.error} doing="read the runs" retry={() => void runs.refetch()} /> : null}
      {runs.isSuccess && list.length === 0 ? <NoRuns /> : null}
      {list.length > 0 ? <RunTable runs={list} label="Runs" /> : null}
      {runs.hasNextPage ? <button type="button" className="button" onClick={() => void runs.fetchNextPage()}>Show more</button> : null}
    </section>
  );
}

export function NoRuns() {
  return (
    <Empty title="No runs yet">
      A run is one execution of a workflow. An agent starts it with <code>workflow_start</code>; <code>guideway run ID</code> walks one at a terminal.
    </Empty>
  );
}
