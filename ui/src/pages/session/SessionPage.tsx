import { useLocation, useSearch } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useMay, useSession, useSessionByID, useSessionFindings } from "../../api/reads";
import { Ring } from "../../parts/Ring";
import { folder } from "../../parts/sizes";
import { Empty, Failed, Missing, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { Tabs } from "../../parts/Tabs";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import { useDeleting } from "../sessions/deleting";
import { headOf } from "../sessions/head";
import { Ambiguous } from "./Ambiguous";
import { isObject, nameInWords, sectionsOf } from "./shapes";
import { Value } from "./Value";
import "./session.css";

/** A session document. The address may name its workflow and project, or its id alone. */
export function SessionPage({ id }: { id: string }) {
  const search = new URLSearchParams(useSearch());
  const workflow = search.get("workflow") ?? "";
  const named = useSession(workflow, id, search.get("project") ?? undefined, workflow !== "");
  const alone = useSessionByID(id, workflow === "");
  const session = workflow === "" ? alone : named;
  const title = session.data === undefined ? id : (headOf(session.data.session.data["dashboard"]).title ?? id);
  useTitle(title);
  if (session.isPending) return <Skeleton rows={12} />;
  if (session.isError) {
    const { error } = session;
    if (error instanceof ApiError && error.status === 404) return <Missing what="session" />;
    if (error instanceof ApiError && error.status === 409) return <Ambiguous candidates={error.problem.candidates ?? []} />;
    return <Failed error={error} doing="read the session" retry={() => void session.refetch()} />;
  }
  return <Document session={session.data.session} />;
}

function Document({ session: s }: { session: Schemas["Session"] }) {
  const [, go] = useLocation();
  const remove = useDeleting();
  const may = useMay("work");
  const head = headOf(s.data["dashboard"]);
  return (
    <>
      <header className="head">
        <div className="session-head">
          {head.progress === undefined ? null : <Ring percent={head.progress} size={56} />}
          <div>
            <h1>{head.title ?? s.id}</h1>
            {head.subtitle === undefined ? null : <p>{head.subtitle}</p>}
            <p className="quiet">
              {head.status === undefined ? null : <><Status word={head.status} /> · </>}
              {[head.phase, head.step].filter((t) => t !== undefined).map((t) => `${t} · `)}
              {head.confidence === undefined ? null : <>confidence {head.confidence} of 10 · </>}
              {s.workflowId} · <span title={s.projectPath}>{folder(s.projectPath)}</span> · changed <When at={s.updatedAt} />
            </p>
          </div>
        </div>
        <div className="actions"><button type="button" className="button" disabled={!may || remove.isPending} onClick={() => remove.run([s], () => go("/sessions"))}>Delete</button></div>
      </header>
      <Tabs label="About the session" tabs={[
        { id: "data", name: "Data", body: <Sections data={s.data} /> },
        { id: "findings", name: "Diagnostics", body: <Findings session={s} /> },
        { id: "json", name: "JSON", body: <pre tabIndex={0}>{JSON.stringify(s.data, null, 2)}</pre> },
      ]} />
    </>
  );
}

function Sections({ data }: { data: Record<string, unknown> }) {
  const sections = sectionsOf(data);
  const dashboard = isObject(data["dashboard"]) ? data["dashboard"] : {};
  const shown = new Set(["title", "subtitle", "status", "progress", "confidence", "currentPhase", "currentStep"]);
  const rest = Object.fromEntries(Object.entries(dashboard).filter(([name]) => !shown.has(name)));
  if (sections.length === 0 && Object.keys(rest).length === 0) return <Empty title="No content yet">What the agent adds to the document appears here.</Empty>;
  return (
    <div className="session-sections">
      {Object.keys(rest).length === 0 ? null : <Value value={rest} />}
      {sections.map(({ name, value, collapsed }) => (
        <details key={name} open={!collapsed} className="session-section">
          <summary><h2>{nameInWords(name)}{Array.isArray(value) ? <span className="quiet"> {value.length}</span> : null}</h2></summary>
          <Value value={value} name={name} />
        </details>
      ))}
    </div>
  );
}

function Findings({ session: s }: { session: Schemas["Session"] }) {
  const found = useSessionFindings(s.workflowId, s.id, s.projectId);
  if (found.isPending) return <Skeleton rows={3} />;
  if (found.isError) return <Failed error={found.error} doing="read the diagnostics" retry={() => void found.refetch()} />;
  if (found.data.entries.length === 0) return <Empty title="No diagnostics">Documents are checked against the members that dashboards read. A diagnostic never blocks an agent.</Empty>;
  return (
    <ul className="session-findings">
      {found.data.entries.map((e, i) => <li key={i}><code>{e.pointer}</code> {e.message} <span className="quiet">revision {e.revision}, <When at={e.at} /></span></li>)}
    </ul>
  );
}
