import type { Schemas } from "../../api/client";
import type { HookDocument } from "./document";
import type { Marks } from "./Piece";

/** What is to be seen at each node: findings, and what it took in a trial or in the calls of late. */
export function marksOf(doc: HookDocument, found: Schemas["Diagnostic"][], trial: Schemas["HookTrial"] | undefined, stats: Schemas["HookStats"] | undefined): Map<string, Marks> {
  const marks = new Map<string, Marks>(doc.nodes.map((n) => [n.id, { errors: 0, warnings: 0 }]));
  for (const d of found) {
    const id = nodeAt(doc, d);
    const mark = id === undefined ? undefined : marks.get(id);
    if (mark === undefined) continue;
    if (d.severity === "error") mark.errors++;
    else mark.warnings++;
  }
  const slowest = Math.max(1, ...(stats?.nodes ?? []).map((n) => n.p99));
  for (const n of stats?.nodes ?? []) {
    const mark = marks.get(n.id);
    if (mark === undefined || n.count === 0) continue;
    mark.heat = n.p99 / slowest;
    mark.failed = n.errors > 0;
    mark.note = `${time(n.p50)}, p99 ${time(n.p99)}${n.errors === 0 ? "" : `, ${n.errors} of ${n.count} failed`}`;
  }
  if (trial === undefined) return marks;
  for (const mark of marks.values()) delete mark.note;
  for (const n of trial.nodes) {
    const mark = marks.get(n.id);
    if (mark === undefined) continue;
    mark.note = n.error === undefined ? (n.skipped === true ? "skipped" : time(n.ms)) : n.error.code;
    mark.failed = n.error !== undefined;
  }
  return marks;
}

function time(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** The node that a finding is about. */
function nodeAt(doc: HookDocument, d: Schemas["Diagnostic"]): string | undefined {
  const at = /^\/nodes\/(\d+)/.exec(d.pointer);
  return at === null ? (d.pointer.startsWith("/edges/") ? undefined : d.node) : doc.nodes[Number(at[1])]?.id;
}

/** The edges that errors are about, by their places. */
export function badEdges(found: Schemas["Diagnostic"][]): Set<number> {
  return new Set(found.flatMap((d) => { const at = /^\/edges\/(\d+)/.exec(d.pointer); return at === null || d.severity !== "error" ? [] : [Number(at[1])]; }));
}
