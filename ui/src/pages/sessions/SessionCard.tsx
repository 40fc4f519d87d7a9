import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { Ring } from "../../parts/Ring";
import { folder } from "../../parts/sizes";
import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import { headOf } from "./head";
import "./sessions.css";

/** A session document at a glance. */
export function SessionCard({ session: s, choice }: { session: Schemas["SessionSummary"]; choice?: ReactNode }) {
  const head = headOf(s.data.dashboard);
  const where = [head.phase, head.step].filter((t) => t !== undefined).join(" · ");
  return (
    <article className="card session-card">
      {head.progress === undefined ? <span className="session-noring" aria-hidden="true" /> : <Ring percent={head.progress} />}
      <div className="session-words">
        <h3><Link href={s.url}>{head.title ?? s.id}</Link></h3>
        <p className="session-line">{head.status === undefined ? null : <Status word={head.status} />} {where === "" ? null : <span className="quiet">{where}</span>}</p>
        <p className="quiet session-line">{s.workflowId} · <span title={s.projectPath}>{folder(s.projectPath)}</span> · <When at={s.updatedAt} /></p>
      </div>
      {choice}
    </article>
  );
}
