import { useSessions } from "../../api/reads";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import "../../parts/table.css";
import { headOf } from "./head";

/** All session documents. */
export function SessionsPage() {
  const sessions = useSessions();
  const list = sessions.data?.sessions ?? [];
  return (
    <section className="section">
      <h1>Sessions</h1>
      {sessions.isPending ? <Skeleton /> : null}
      {sessions.isError ? <Failed error={sessions.error} doing="read the sessions" retry={() => void sessions.refetch()} /> : null}
      {sessions.isSuccess && list.length === 0 ? (
        <Empty title="No session documents yet">
          A session document is what an agent writes for you to follow its work. It makes one with <code>workrail_create_session</code>.
        </Empty>
      ) : null}
      {list.length > 0 ? (
        <table className="table" aria-label="Session documents">
          <thead>
            <tr>
              <th scope="col">Status</th><th scope="col">Session</th><th scope="col">Workflow</th>
              <th scope="col">Project</th><th scope="col" className="number">Progress</th><th scope="col" className="number">Changed</th>
            </tr>
          </thead>
          <tbody>
            {list.map((s) => {
              const head = headOf(s.data.dashboard);
              return (
                <tr key={`${s.projectId}/${s.workflowId}/${s.id}`}>
                  <td data-label="Status">{head.status === undefined ? "" : <Status word={head.status} />}</td>
                  <td data-label="Session"><a href={s.url}>{head.title ?? s.id}</a></td>
                  <td data-label="Workflow">{s.workflowId}</td>
                  <td data-label="Project" title={s.projectPath}>{s.projectPath.split(/[\\/]/).filter(Boolean).pop() ?? s.projectId}</td>
                  <td data-label="Progress" className="number">{head.progress === undefined ? "" : `${head.progress} %`}</td>
                  <td data-label="Changed" className="number"><When at={s.updatedAt} /></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      ) : null}
    </section>
  );
}
