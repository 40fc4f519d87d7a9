import { useRun } from "../../api/reads";
import { ApiError } from "../../api/client";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import { RunActions } from "./RunActions";
import { RunGraph } from "./RunGraph";
import { RunPosition } from "./RunPosition";
import { Timeline } from "./Timeline";
import { Variables } from "./Variables";
import "./run.css";

/** One run: what it waits for, where it is, what has happened. */
export function RunPage({ id }: { id: string }) {
  const run = useRun(id);
  if (run.isPending) return <Skeleton rows={12} />;
  if (run.isError) {
    if (run.error instanceof ApiError && run.error.status === 404) return <Missing what="run" />;
    return <Failed error={run.error} doing="read the run" retry={() => void run.refetch()} />;
  }
  const { run: record, position, events, variables, handle } = run.data;
  return (
    <div className="run">
      <header className="run-head">
        <div>
          <h1>{record.goal === undefined || record.goal === "" ? record.workflowName : record.goal}</h1>
          <p className="quiet">
            <Status word={record.status} /> · {record.workflowName} {record.version} · {record.done} steps done · changed <When at={record.updatedAt} />
          </p>
          <p className="mono quiet">{record.runId}</p>
        </div>
        <RunActions run={record} />
      </header>
      <RunPosition runId={id} handle={handle ?? ""} position={position} status={record.status} />
      <div className="run-columns">
        <RunGraph runId={id} position={position} events={events} />
        <div className="run-side">
          <Timeline events={events} />
          <Variables variables={variables} />
        </div>
      </div>
    </div>
  );
}
