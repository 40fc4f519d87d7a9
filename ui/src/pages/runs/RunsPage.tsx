import { useSearchParams } from "wouter";
import { useProjects, useRuns, useRunSearch, useWorkflows, type RunFilter } from "../../api/reads";
import type { Schemas } from "../../api/client";
import { SearchBox } from "../../parts/SearchBox";
import { folder } from "../../parts/sizes";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { rowOf, RunTable, type RunRow } from "./RunTable";

const statuses: Schemas["RunStatus"][] = ["running", "waiting", "completed", "aborted"];

/** All runs, with what narrows them in the address. */
export function RunsPage() {
  useTitle("Runs");
  const [search, setSearch] = useSearchParams();
  const words = search.get("q") ?? "";
  const set = (name: string, value: string) => setSearch((now) => {
    if (value === "") now.delete(name);
    else now.set(name, value);
    return now;
  }, { replace: true });
  return (
    <section className="section">
      <h1>Runs</h1>
      <Filters search={search} set={set} />
      {words === "" ? <Listed filter={filterOf(search)} /> : <Found words={words} />}
    </section>
  );
}

function filterOf(search: URLSearchParams): RunFilter {
  const status = statuses.find((s) => s === search.get("status"));
  const workflow = search.get("workflow") ?? "";
  const project = search.get("project") ?? "";
  return {
    ...(status === undefined ? {} : { status: [status] }), ...(workflow === "" ? {} : { workflow }),
    ...(project === "" ? {} : { project }), ...(search.get("person") === "true" ? { person: true } : {}),
  };
}

function Filters({ search, set }: { search: URLSearchParams; set: (name: string, value: string) => void }) {
  const workflows = useWorkflows();
  const projects = useProjects();
  const searching = (search.get("q") ?? "") !== "";
  return (
    <div className="filters" role="search">
      <SearchBox label="Search runs" value={search.get("q") ?? ""} onSearch={(q) => set("q", q)} />
      {searching ? <span className="quiet">The search looks through all runs</span> : (
        <>
          <Choice label="Status" value={search.get("status") ?? ""} onChoose={(v) => set("status", v)} any="Any status" options={statuses.map((s) => [s, s])} />
          <Choice label="Workflow" value={search.get("workflow") ?? ""} onChoose={(v) => set("workflow", v)} any="Any workflow"
            options={(workflows.data?.workflows ?? []).map((w) => [w.id, w.name])} />
          <Choice label="Project" value={search.get("project") ?? ""} onChoose={(v) => set("project", v)} any="Any project"
            options={(projects.data?.projects ?? []).map((p) => [p.id, folder(p.path)])} />
          <label className="check">
            <input type="checkbox" checked={search.get("person") === "true"} onChange={(e) => set("person", e.target.checked ? "true" : "")} /> Waits for a person
          </label>
        </>
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  any: string;
  options: [value: string, name: string][];
  onChoose: (value: string) => void;
}

function Choice({ label, value, any, options, onChoose }: ChoiceProps) {
  const known = value === "" || options.some(([v]) => v === value);
  return (
    <select aria-label={label} value={value} onChange={(e) => onChoose(e.target.value)}>
      <option value="">{any}</option>
      {known ? null : <option value={value}>{value}</option>}
      {options.map(([v, name]) => <option key={v} value={v}>{name}</option>)}
    </select>
  );
}

function Listed({ filter }: { filter: RunFilter }) {
  const runs = useRuns(filter);
  const rows = runs.data?.pages.flatMap((p) => p.runs.map(rowOf)) ?? [];
  if (runs.isPending) return <Skeleton rows={12} />;
  if (runs.isError) return <Failed error={runs.error} doing="read the runs" retry={() => void runs.refetch()} />;
  if (rows.length === 0) return Object.keys(filter).length === 0 ? <NoRuns /> : <Empty title="No matching runs">Remove a filter to see more.</Empty>;
  const more = () => {
    if (runs.hasNextPage && !runs.isFetchingNextPage) void runs.fetchNextPage();
  };
  return (
    <>
      <RunTable rows={rows} label="Runs" onEnd={more} />
      {runs.hasNextPage ? <button type="button" className="button" onClick={more}>Show more</button> : null}
    </>
  );
}

function Found({ words }: { words: string }) {
  const found = useRunSearch(words);
  if (found.isPending) return <Skeleton />;
  if (found.isError) return <Failed error={found.error} doing="search the runs" retry={() => void found.refetch()} />;
  if (found.data.runs.length === 0) return <Empty title={`Nothing found for “${words}”`}>The search covers goals, notes, workflows, projects and branches.</Empty>;
  const rows = found.data.runs.map((c): RunRow => ({
    runId: c.runId, status: c.status, person: c.position.person === true, goal: c.goal ?? "", workflow: c.workflowId,
    at: c.position.title ?? "", done: undefined, updatedAt: c.updatedAt,
  }));
  return <RunTable rows={rows} label={`Runs found for ${words}, the best first`} />;
}

/** Says what runs are, where there are none. */
export function NoRuns() {
  return (
    <Empty title="No runs yet">
      A run is one execution of a workflow. An agent starts it with <code>workflow_start</code>, or you do on the page of a workflow.
    </Empty>
  );
}
