import { useState } from "react";
import { useSearchParams } from "wouter";
import type { Schemas } from "../../api/client";
import { useMay, useSessions } from "../../api/reads";
import { useGrowing } from "../../parts/growing";
import { SearchBox } from "../../parts/SearchBox";
import { folder } from "../../parts/sizes";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { headOf } from "./head";
import { SessionCard } from "./SessionCard";
import { useDeleting } from "./deleting";
import "./sessions.css";

type Summary = Schemas["SessionSummary"];

/** All session documents, with what narrows them in the address. */
export function SessionsPage() {
  useTitle("Sessions");
  const sessions = useSessions();
  return (
    <section className="section">
      <h1>Sessions</h1>
      {sessions.isPending ? <Skeleton /> : null}
      {sessions.isError ? <Failed error={sessions.error} doing="read the sessions" retry={() => void sessions.refetch()} /> : null}
      {sessions.isSuccess && sessions.data.sessions.length === 0 ? (
        <Empty title="No session documents yet">
          A session document is what an agent writes so that you can follow its work. It creates one with <code>workrail_create_session</code>.
        </Empty>
      ) : null}
      {sessions.isSuccess && sessions.data.sessions.length > 0 ? <SessionList list={sessions.data.sessions} /> : null}
    </section>
  );
}

const keyOf = (s: Summary) => `${s.projectId}/${s.workflowId}/${s.id}`;

function SessionList({ list }: { list: Summary[] }) {
  const [search, setSearch] = useSearchParams();
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const remove = useDeleting();
  const may = useMay("work");
  const set = (name: string, value: string) => setSearch((now) => {
    if (value === "") now.delete(name);
    else now.set(name, value);
    return now;
  }, { replace: true });
  const words = (search.get("q") ?? "").toLowerCase();
  const project = search.get("project") ?? "";
  const workflow = search.get("workflow") ?? "";
  const shown = list.filter((s) =>
    (project === "" || s.projectId === project) && (workflow === "" || s.workflowId === workflow) && (words === "" || wordsOf(s).includes(words)));
  const { drawn, end } = useGrowing(shown.length);
  const picked = list.filter((s) => chosen.has(keyOf(s)));
  const toggle = (key: string, on: boolean) => setChosen((now) => {
    const next = new Set(now);
    if (on) next.add(key);
    else next.delete(key);
    return next;
  });
  return (
    <>
      <div className="filters" role="search">
        <SearchBox label="Search sessions" value={search.get("q") ?? ""} onSearch={(q) => set("q", q)} />
        <select aria-label="Project" value={project} onChange={(e) => set("project", e.target.value)}>
          <option value="">Any project</option>
          {[...new Map(list.map((s) => [s.projectId, s.projectPath]))].map(([id, path]) => <option key={id} value={id}>{folder(path)}</option>)}
        </select>
        <select aria-label="Workflow" value={workflow} onChange={(e) => set("workflow", e.target.value)}>
          <option value="">Any workflow</option>
          {[...new Set(list.map((s) => s.workflowId))].sort().map((id) => <option key={id} value={id}>{id}</option>)}
        </select>
      </div>
      {shown.length === 0 ? <Empty title="No matching sessions">Remove a filter to see more.</Empty> : null}
      <ul className="cards">
        {shown.slice(0, drawn).map((s) => (
          <li key={keyOf(s)}>
            <SessionCard session={s} choice={<label className="check"><input type="checkbox" checked={chosen.has(keyOf(s))} onChange={(e) => toggle(keyOf(s), e.target.checked)} /><span className="visually-hidden">Select {headOf(s.data.dashboard).title ?? s.id}</span></label>} />
          </li>
        ))}
      </ul>
      {drawn < shown.length ? <p key={drawn} ref={end} className="quiet">{shown.length - drawn} more</p> : null}
      {picked.length === 0 ? null : (
        <div className="chosen-bar" role="group" aria-label="Actions for the selected sessions">
          <span>{picked.length === 1 ? "1 session is selected" : `${picked.length} sessions are selected`}</span>
          <button type="button" className="button" disabled={!may || remove.isPending} onClick={() => remove.run(picked, () => setChosen(new Set()))}>Delete</button>
          <button type="button" className="button button-bare" onClick={() => setChosen(new Set())}>Clear the selection</button>
        </div>
      )}
    </>
  );
}

function wordsOf(s: Summary): string {
  const head = headOf(s.data.dashboard);
  return [s.id, s.workflowId, s.projectPath, head.title, head.subtitle, head.status, head.phase, head.step].join(" ").toLowerCase();
}
