import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { took } from "./words";
import { valueText } from "../../parts/values";

type Node = Schemas["RequestNode"];

/** What one hook graph did: its nodes in order, the slow ones seen at a glance. */
export function HookTrace({ graph }: { graph: Schemas["RequestGraph"] }) {
  const longest = Math.max(...graph.nodes.map((n) => n.ms), 0.001);
  return (
    <section aria-label={`Hook graph ${graph.id}`} className="trace">
      <h2>Hook graph <Link href={`/hooks/${encodeURIComponent(graph.id)}`}>{graph.id}</Link> <span className="quiet">{graph.outcome}</span></h2>
      <ol className="trace-nodes">
        {graph.nodes.map((n) => <TraceNode key={n.id} node={n} share={n.ms / longest} />)}
      </ol>
    </section>
  );
}

function TraceNode({ node, share }: { node: Node; share: number }) {
  return (
    <li className="trace-node" data-failed={node.error !== undefined}>
      <div className="trace-head">
        <span className="trace-name">{node.label ?? node.id}</span>
        <span className="quiet">{aboutNode(node)}</span>
        <span className="number">{took(node.ms)}</span>
      </div>
      <div className="trace-bar" aria-hidden="true"><span style={{ width: `${Math.round(share * 100)}%` }} /></div>
      {node.error === undefined ? null : <p className="request-error">{node.error.code}: {node.error.message}{place(node.error)}</p>}
      {(node.changes ?? []).length === 0 ? null : <Changes list={node.changes ?? []} />}
      {node.console.length === 0 ? null : (
        <pre className="trace-console" tabIndex={0} aria-label={`Console of ${node.label ?? node.id}`}>{node.console.map((l) => `${l.level}: ${l.text}`).join("\n")}</pre>
      )}
    </li>
  );
}

function aboutNode(n: Node): string {
  const words = [n.type];
  if (n.fireAndForget === true) words.push("fire-and-forget");
  if (n.branch !== undefined) words.push(n.branch);
  if (n.pending === true) words.push("still running when recorded");
  if (n.skipped === true) words.push("skipped: a hook answered");
  return words.join(", ");
}

function place(e: NonNullable<Node["error"]>): string {
  return e.line === undefined || e.line === 0 ? "" : ` (${e.file ?? ""}:${e.line}:${e.column ?? 0})`;
}

const ops = { add: "Added", remove: "Removed", replace: "Changed" } as const;

function Changes({ list }: { list: NonNullable<Node["changes"]> }) {
  return (
    <ul className="changes">
      {list.map((c) => (
        <li key={`${c.op} ${c.pointer}`}>
          <span className="change-op">{ops[c.op]}</span> <code>{c.pointer}</code>
          {c.before === undefined ? null : <pre className="change-before">− {valueText(c.before)}</pre>}
          {c.after === undefined ? null : <pre className="change-after">+ {valueText(c.after)}</pre>}
        </li>
      ))}
    </ul>
  );
}
