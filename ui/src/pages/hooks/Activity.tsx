import { useEffect, useRef, useState } from "react";
import type { Schemas } from "../../api/client";
import { useDisableHook, useEnableHook, useHookModule } from "../../api/hooks";
import { useMay } from "../../api/reads";
import { isObject, list, text } from "../../graph/json";
import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";
import { Failed } from "../../parts/States";

const shapes: Record<string, string> = { active: "running", off: "skipped", changed: "waiting", broken: "failed", template: "skipped" };

/** How a graph stands, by colour, shape and word. */
export function HookState({ hook }: { hook: Schemas["Hook"] }) {
  const kind = shapes[hook.state] ?? "skipped";
  return <span className="hook-state" data-state={hook.state} title={hook.why}><span className="status" data-kind={kind}><span aria-hidden="true">{marks[hook.state] ?? "·"}</span> {hook.state}</span></span>;
}

const marks: Record<string, string> = { active: "▶", off: "○", changed: "⬣", broken: "✕", template: "◇" };

/** Turns a graph on and off. Only what is saved can be enabled. */
export function Activity({ answer, dirty }: { answer: Schemas["HookAnswer"]; dirty: boolean }) {
  const { hook } = answer;
  const [asking, setAsking] = useState(false);
  const disable = useDisableHook();
  const may = useMay("define");
  const tell = useNotice();
  const off = () => disable.mutate(hook.id, { onSuccess: () => { tell({ text: `${hook.id} is off.` }); }, onError: (e) => tell({ text: e.message, failed: true }) });
  const canEnable = hook.pin !== undefined && hook.state !== "active" && hook.state !== "template";
  return (
    <>
      <HookState hook={hook} />
      {hook.enabled ? <Ask trigger={<button type="button" className="button" disabled={!may}>Disable</button>} title={`Disable ${hook.id}?`} verb="Disable it" onAgree={off}><p>The calls that it wraps continue without it immediately.</p></Ask> : null}
      {canEnable ? <button type="button" className="button" disabled={!may || dirty} title={dirty ? "Save it first: only the saved version can be enabled" : undefined} onClick={() => setAsking(true)}>{hook.enabled ? "Enable again…" : "Enable…"}</button> : null}
      {asking ? <Enable answer={answer} onClose={() => setAsking(false)} onDone={() => setAsking(false)} /> : null}
    </>
  );
}

function Enable({ answer, onClose, onDone }: { answer: Schemas["HookAnswer"]; onClose: () => void; onDone: () => void }) {
  const { hook } = answer;
  const dialog = useRef<HTMLDialogElement>(null);
  const enable = useEnableHook();
  const tell = useNotice();
  const [order, setOrder] = useState(String(hook.order));
  useEffect(() => dialog.current?.showModal(), []);
  const send = () => enable.mutate({ id: hook.id, pin: hook.pin ?? "", ...(order === String(hook.order) ? {} : { order: Number(order) }) }, {
    onSuccess: () => { tell({ text: `${hook.id} is active.` }); onDone(); },
  });
  return (
    <dialog ref={dialog} className="ask enable" aria-labelledby="enable-title" onClose={onClose}>
      <form onSubmit={(e) => { e.preventDefault(); send(); }}>
        <h2 id="enable-title">Enable {hook.id}?</h2>
        <p>It wraps <code>{methodWords(hook)}</code> for {bindingWords(hook)}.</p>
        {hook.own ? <p className="quiet">It is yours: it stays active when you edit it.</p> : <Scripts answer={answer} />}
        <label className="field"><span>Order in the chain: the lowest sees the request first and the response last</span>
          <input type="number" min={0} max={100} required value={order} onChange={(e) => setOrder(e.target.value)} /></label>
        {enable.isError ? <Failed error={enable.error} doing="enable it" /> : null}
        <div className="ask-buttons">
          <button type="button" className="button" onClick={() => dialog.current?.close()}>Cancel</button>
          <button type="submit" className="button button-main" disabled={enable.isPending}>{hook.own ? "Enable it" : "Approve this version"}</button>
        </div>
      </form>
    </dialog>
  );
}

/** What a graph of a project would run, to be looked at before. */
function Scripts({ answer }: { answer: Schemas["HookAnswer"] }) {
  const nodes = list(answer.graph?.["nodes"]).filter((n) => n["type"] === "hook");
  return (
    <>
      <p>It comes from a project. Its scripts see the data of the calls that it wraps. You approve this version only: any change needs a new approval.</p>
      {nodes.map((n) => {
        const data = isObject(n["data"]) ? n["data"] : {};
        const hook = isObject(data["hook"]) ? data["hook"] : {};
        const module = text(hook["hookModuleId"]);
        const own = list(answer.graph?.["modules"]).find((m) => m["id"] === module);
        return <div key={text(n["id"])} className="field"><span>{text(n["id"])}{module === "" ? "" : `, module ${module}`}</span>{module === "" || own !== undefined ? <pre className="module-script" tabIndex={0}>{text(own === undefined ? hook["script"] : own["script"])}</pre> : <SharedScript id={module} />}</div>;
      })}
    </>
  );
}

function SharedScript({ id }: { id: string }) {
  const module = useHookModule(id);
  return <pre className="module-script" tabIndex={0}>{module.data?.module.script ?? "…"}</pre>;
}

/** The methods that a graph wraps. */
export function methodWords(hook: Schemas["Hook"]): string {
  return [hook.type ?? "", ...(hook.also ?? [])].join(", ");
}

/** Which requests a graph stands around, in words. */
export function bindingWords(hook: Pick<Schemas["Hook"], "bindings">): string {
  const words = (hook.bindings ?? []).map((b) => [b.upstream ?? "*", ...(b.tool === undefined ? [] : [b.tool])].join(":"));
  return words.length === 0 ? "all servers and tools" : words.join(", ");
}
