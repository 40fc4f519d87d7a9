import type { Schemas } from "../../api/client";
import { useUpstreamCommands, useWaitingTools } from "../../api/gateway";
import { useNotice } from "../../parts/Notice";
import { Failed } from "../../parts/States";

type Waiting = Schemas["WaitingTool"];

const why: Record<Waiting["why"], string> = {
  new: "It is new. Clients do not see it until you approve it.",
  changed: "It has changed since it was approved. Clients cannot call it until you approve it.",
  gone: "It is no longer offered.",
};

/** Tools that wait for a person, each with what differs. What is approved is what is shown. */
export function WaitingTools({ name, mayManage }: { name: string; mayManage: boolean }) {
  const waiting = useWaitingTools(name);
  const { approve } = useUpstreamCommands(name);
  const tell = useNotice();
  const list = waiting.data?.waiting ?? [];
  if (waiting.isError) return <Failed error={waiting.error} doing="read what is waiting for you" retry={() => void waiting.refetch()} />;
  if (list.length === 0) return null;
  const send = (tools: Waiting[]) => approve.mutate(
    { tools: tools.map((t) => ({ tool: t.tool, ...(t.hash === undefined ? {} : { hash: t.hash }) })) },
    { onSuccess: () => tell({ text: tools.length === 1 ? `Approved: ${tools[0]?.tool ?? ""}` : `Approved: ${tools.length} tools` }) },
  );
  return (
    <section className="section" aria-labelledby="waits">
      <div className="section-head">
        <h2 id="waits">Waiting for you <span className="quiet">{list.length}</span></h2>
        {list.length > 1 ? <button type="button" className="button" disabled={!mayManage || approve.isPending} onClick={() => send(list)}>Approve all {list.length}</button> : null}
      </div>
      {approve.isError ? <Failed error={approve.error} doing="approve it" /> : null}
      <div className="change-tools">
        {list.map((t) => (
          <article key={t.tool} className="change-tool" aria-label={t.tool}>
            <div className="section-head"><h3 className="mono">{t.tool}</h3><button type="button" className="button button-main" disabled={!mayManage || approve.isPending} onClick={() => send([t])}>{t.why === "gone" ? "Forget the tool" : `Approve ${t.why === "new" ? "tool" : "change"}`}</button></div>
            <p className="quiet prose">{why[t.why]}</p>
            <Changes changes={t.changes ?? []} />
          </article>
        ))}
      </div>
    </section>
  );
}

function Changes({ changes }: { changes: NonNullable<Waiting["changes"]> }) {
  return (
    <div>
      {changes.map((c) => (
        <div key={c.path}>
          <p className="change-path">{c.path}</p>
          {c.before === undefined ? null : <div className="change-line" data-side="before"><span aria-hidden="true">-</span><span>{c.before}</span></div>}
          {c.after === undefined ? null : <div className="change-line" data-side="after"><span aria-hidden="true">+</span><span>{c.after}</span></div>}
        </div>
      ))}
    </div>
  );
}
