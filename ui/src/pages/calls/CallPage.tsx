import { useState } from "react";
import { Link } from "wouter";
import { useAnswerCall, useCall } from "../../api/calls";
import { ApiError, type Schemas } from "../../api/client";
import { useMay } from "../../api/reads";
import { useNotice } from "../../parts/Notice";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import "../requests/requests.css";

/** One held call with all its arguments, and its answer. */
export function CallPage({ id }: { id: string }) {
  const call = useCall(id);
  useTitle(call.data === undefined ? "Held call" : call.data.call.name);
  if (call.isPending) return <Skeleton rows={8} />;
  if (call.isError && call.error instanceof ApiError && call.error.status === 404) return <Missing what="held call" />;
  if (call.isError) return <Failed error={call.error} doing="read the held call" retry={() => void call.refetch()} />;
  const { call: c, text } = call.data;
  const open = c.status === "waiting" || c.status === "approved";
  return (
    <section className="section">
      <p className="quiet"><Link href="/calls">Held calls</Link></p>
      <h1>{c.name}</h1>
      <p className="prose">{c.reason}</p>
      <Facts c={c} open={open} />
      {text === "" ? null : <><h2>Arguments</h2><pre className="request-body" tabIndex={0} aria-label="Arguments">{text}</pre></>}
      {text === "" && open ? <p className="quiet">The call has no arguments.</p> : null}
      {text === "" && !open ? <p className="quiet">The arguments are not kept after the call was used, denied or expired.</p> : null}
      {c.status === "waiting" ? <Answer c={c} /> : null}
    </section>
  );
}

function Facts({ c, open }: { c: Schemas["HeldCall"]; open: boolean }) {
  return (
    <dl className="request-facts">
      <dt>Status</dt><dd><Status word={c.status} /></dd>
      <dt>Made</dt><dd><When at={c.createdAt} /> <span className="quiet">{new Date(c.createdAt).toLocaleString()}</span></dd>
      {open ? <><dt>Expires</dt><dd>{new Date(c.expiresAt).toLocaleString()}</dd></> : null}
      <dt>Upstream</dt><dd>{c.upstream}, tool {c.tool}</dd>
      <dt>Client</dt><dd>{c.client}</dd>
      {c.answer === undefined ? null : <><dt>Answer</dt><dd>{c.answer.approve ? "approved" : "denied"} by {c.answer.by} ({c.answer.via}) <When at={c.answer.at} />{c.answer.note === undefined ? "" : `: ${c.answer.note}`}</dd></>}
      <dt>Id</dt><dd><code>{c.id}</code></dd>
    </dl>
  );
}

function Answer({ c }: { c: Schemas["HeldCall"] }) {
  const answer = useAnswerCall(c.id);
  const may = useMay("answer");
  const tell = useNotice();
  const [note, setNote] = useState("");
  const send = (approve: boolean) => answer.mutate({ approve, ...(note.trim() === "" ? {} : { note: note.trim() }) }, {
    onSuccess: () => tell({ text: approve ? `Approved: ${c.name}` : `Denied: ${c.name}` }),
  });
  return (
    <form className="form" onSubmit={(e) => e.preventDefault()}>
      <h2>Your answer</h2>
      <p className="quiet prose">If you approve, {c.client === "" ? "the client" : c.client} can make exactly this call once, within {Math.round(c.useSeconds / 60)} minutes. If you deny, it is refused for an hour.</p>
      <label className="field"><span>Note to the agent (optional)</span><input type="text" maxLength={2000} value={note} onChange={(e) => setNote(e.target.value)} /></label>
      {answer.isError ? <Failed error={answer.error} doing="answer the call" /> : null}
      <div className="actions">
        <button type="button" className="button button-main" disabled={!may || answer.isPending} onClick={() => send(true)}>Approve this call</button>
        <button type="button" className="button" disabled={!may || answer.isPending} onClick={() => send(false)}>Deny</button>
      </div>
    </form>
  );
}
