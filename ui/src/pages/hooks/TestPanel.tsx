import type { Schemas } from "../../api/client";
import { readRecorded, useRecorded, useTestHook } from "../../api/hooks";
import { useNotice } from "../../parts/Notice";
import { Failed } from "../../parts/States";
import { Status } from "../../parts/Status";
import type { Chosen } from "./Canvas";
import { nodeOf, titleOf, type HookDocument } from "./document";

/** What is tried, kept while the editor is open. */
export interface Sample {
  request: string;
  response: string;
  client: string;
  server: string;
}

const samples: Record<string, { request: string; response: string }> = {
  "tools/call": { request: '{\n  "name": "read_file",\n  "arguments": { "path": "notes.txt" }\n}', response: '{\n  "content": [{ "type": "text", "text": "Hello" }]\n}' },
  "tools/list": { request: "{}", response: '{ "tools": [] }' },
  "resources/read": { request: '{ "uri": "file:///notes.txt" }', response: '{\n  "contents": [{ "uri": "file:///notes.txt", "text": "Hello" }]\n}' },
  "prompts/get": { request: '{\n  "name": "review",\n  "arguments": { "path": "notes.txt" }\n}', response: '{\n  "messages": [{ "role": "user", "content": { "type": "text", "text": "Hello" } }]\n}' },
};

export function sampleFor(type: string): Sample {
  return { request: "{}", response: "{}", ...samples[type], client: "test", server: "test" };
}

interface Props {
  doc: HookDocument;
  source: string;
  sample: Sample;
  trial: Schemas["HookTrial"] | undefined;
  onSample: (s: Sample) => void;
  onTrial: (t: Schemas["HookTrial"] | undefined) => void;
  onChoose: (chosen: Chosen) => void;
}

/** Takes a request through the graph as it is drawn, without any server. */
export function TestPanel({ doc, source, sample, trial, onSample, onTrial, onChoose }: Props) {
  const test = useTestHook();
  const request = objectOf(sample.request);
  const response = sample.response.trim() === "" ? null : objectOf(sample.response);
  const cannot = request === undefined ? "The request is not a JSON object" : response === undefined ? "The response is not a JSON object" : undefined;
  const run = () => test.mutate({
    graph: doc, source, request: request ?? {}, ...(response === null || response === undefined ? {} : { response }), client: sample.client, server: sample.server,
  }, { onSuccess: onTrial, onError: () => onTrial(undefined) });
  return (
    <form className="panel" onSubmit={(e) => { e.preventDefault(); run(); }}>
      <Recorded method={doc.workflowType} onTake={(taken) => onSample({ ...sample, ...taken })} />
      <label className="field"><span>Request: the params of {doc.workflowType}</span><textarea rows={5} className="mono" spellCheck={false} value={sample.request} onChange={(e) => onSample({ ...sample, request: e.target.value })} /></label>
      <label className="field"><span>Response of the server; {'{"error": {"message": "…"}}'} is a failed call</span><textarea rows={4} className="mono" spellCheck={false} value={sample.response} onChange={(e) => onSample({ ...sample, response: e.target.value })} /></label>
      <div className="panel-row">
        <label className="field"><span>Client</span><input type="text" value={sample.client} onChange={(e) => onSample({ ...sample, client: e.target.value })} /></label>
        <label className="field"><span>Server</span><input type="text" value={sample.server} onChange={(e) => onSample({ ...sample, server: e.target.value })} /></label>
      </div>
      <div className="actions"><button type="submit" className="button button-main" disabled={cannot !== undefined || test.isPending}>Test the graph</button><span className="quiet">{cannot ?? "Nothing is sent to any server. The scripts run in the sandbox."}</span></div>
      {test.isError ? <Failed error={test.error} doing="test the graph" /> : null}
      {trial === undefined ? null : <Trial trial={trial} doc={doc} onChoose={onChoose} />}
    </form>
  );
}

/** Takes a request that was recorded; where its arguments are not kept, its tool and who called. */
function Recorded({ method, onTake }: { method: string; onTake: (taken: Partial<Sample>) => void }) {
  const recorded = useRecorded(method);
  const tell = useNotice();
  const list = recorded.data?.requests ?? [];
  if (list.length === 0) return null;
  const take = (id: string) => readRecorded(id).then((r) => onTake(sampleOf(r)), (e: unknown) => tell({ text: e instanceof Error ? e.message : String(e), failed: true }));
  return (
    <label className="field">
      <span>{recorded.data?.recording.bodies === true ? "Take a recorded request" : "Take a recorded request; its arguments are not kept"}</span>
      <select value="" onChange={(e) => { if (e.target.value !== "") void take(e.target.value); }}>
        <option value="">Choose one…</option>
        {list.map((r) => <option key={r.id} value={r.id}>{new Date(r.at).toLocaleTimeString()} · {r.upstream ?? ""} {r.tool ?? r.method} · {r.status}</option>)}
      </select>
    </label>
  );
}

/** A sample of what is kept of a request. */
export function sampleOf(r: Schemas["Request"]): Partial<Sample> {
  const args = r.request === undefined || r.request.cut === true ? undefined : objectOf(r.request.text);
  const params = r.method === "tools/call" ? { name: r.tool ?? "", arguments: args ?? {} } : (args ?? {});
  const response = r.response === undefined || r.response.cut === true ? undefined : objectOf(r.response.text);
  return {
    request: JSON.stringify(params, null, 2), ...(response === undefined ? {} : { response: JSON.stringify(response, null, 2) }),
    ...(r.client === undefined ? {} : { client: r.client }), ...(r.upstream === undefined ? {} : { server: r.upstream }),
  };
}

const words: Record<string, string> = { passed: "done", changed: "done", answered: "done", refused: "refused", error: "failed" };
const says: Record<string, string> = {
  passed: "It passed unchanged.", changed: "It passed, changed by a hook.", answered: "A hook answered in place of the server.", refused: "A hook refused it.", error: "It failed.",
};

function Trial({ trial, doc, onChoose }: { trial: Schemas["HookTrial"]; doc: HookDocument; onChoose: (chosen: Chosen) => void }) {
  return (
    <section className="trial" aria-label="Result">
      <p><Status word={words[trial.outcome] ?? trial.outcome} /> <strong>{says[trial.outcome] ?? trial.outcome}</strong></p>
      {trial.error === undefined ? null : <p className="trial-error">{trial.error.code}: {trial.error.message}</p>}
      <ol className="trial-nodes">
        {trial.nodes.map((n, i) => <TrialNode key={i} n={n} title={(() => { const at = nodeOf(doc, n.id); return at === undefined ? n.id : titleOf(at); })()} onChoose={() => onChoose({ node: n.id })} />)}
      </ol>
      <Json name="Request as the server gets it" value={trial.request.params} />
      <Json name="Response as the client gets it" value={trial.response} />
      {(trial.audit ?? []).map((a, i) => <Json key={i} name="Audit record" value={a} />)}
    </section>
  );
}

function TrialNode({ n, title, onChoose }: { n: Schemas["HookNodeTrace"]; title: string; onChoose: () => void }) {
  const more = n.fireAndForget === true ? "fire-and-forget" : n.skipped === true ? "skipped" : n.branch === undefined ? "" : `continued on ${n.branch}`;
  return (
    <li data-failed={n.error === undefined ? undefined : true}>
      <p><button type="button" className="link" onClick={onChoose}>{title}</button> <span className="quiet">{more}</span> <span className="number mono">{n.ms.toFixed(1)} ms</span></p>
      {n.error === undefined ? null : <p className="trial-error">{n.error.code}: {n.error.message}{n.error.line === undefined ? "" : ` (line ${n.error.line}:${n.error.column ?? 1})`}</p>}
      {n.changes === undefined || n.changes.length === 0 ? null : (
        <ul className="changes">{n.changes.map((c, i) => (
          <li key={i}><code>{c.pointer}</code>{c.op === "add" ? null : <del>{JSON.stringify(c.before)}</del>}{c.op === "remove" ? null : <ins>{JSON.stringify(c.after)}</ins>}</li>
        ))}</ul>
      )}
      {n.console.length === 0 ? null : <pre className="console">{n.console.map((l) => `${l.level}  ${l.text}`).join("\n")}</pre>}
      <Json name="Input" value={n.input} />
      <Json name="Output" value={n.output} />
    </li>
  );
}

function Json({ name, value }: { name: string; value: unknown }) {
  if (value === undefined) return null;
  return <details><summary>{name}</summary><pre>{JSON.stringify(value, null, 2)}</pre></details>;
}

function objectOf(written: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(written);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
