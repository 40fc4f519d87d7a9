import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import "./states.css";

/** Stands in for rows that are on their way, so that nothing jumps. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => <div key={i} className="skeleton-row" />)}
    </div>
  );
}

/** Says what an empty place is for, and how to fill it. */
export function Empty({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="state">
      <h3>{title}</h3>
      <div className="quiet prose">{children}</div>
    </div>
  );
}

/** Says what happened, why, and the next step. */
export function Failed({ error, doing, retry }: { error: unknown; doing: string; retry?: () => void }) {
  if (error instanceof ApiError && error.status === 401) return <LoggedOut />;
  if (error instanceof ApiError && error.status === 403) return <NotAllowed error={error} doing={doing} />;
  const problem = error instanceof ApiError ? error.problem : undefined;
  return (
    <div className="state" role="alert">
      <h3>Could not {doing}</h3>
      <p className="prose">{error instanceof Error ? error.message : String(error)}</p>
      {problem?.fix === undefined ? null : <p className="quiet prose">{problem.fix}</p>}
      {retry === undefined ? null : <button type="button" className="button" onClick={retry}>Try again</button>}
    </div>
  );
}

function LoggedOut() {
  return (
    <div className="state" role="alert">
      <h3>This browser is not logged in</h3>
      <p className="prose">Run <code>guideway open</code> at a terminal and follow its link.</p>
    </div>
  );
}

function NotAllowed({ error, doing }: { error: ApiError; doing: string }) {
  return (
    <div className="state" role="alert">
      <h3>You may not {doing}</h3>
      <p className="prose">{error.message}</p>
      {error.problem.fix === undefined ? null : <p className="quiet prose">{error.problem.fix}</p>}
    </div>
  );
}

/** Says that nothing is at this address. */
export function Missing({ what }: { what: string }) {
  return <Empty title={`There is no such ${what}`}>It may have been deleted, or the address is incomplete.</Empty>;
}
