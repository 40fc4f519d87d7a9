import type { Schemas } from "../../api/client";

/** A time so that its size shows. */
export function took(ms: number): string {
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(1)} s`;
}

/** What a request was for. */
export function target(r: Pick<Schemas["Request"], "method" | "upstream" | "tool">): string {
  const what = [r.upstream, r.tool].filter((part) => part !== undefined && part !== "").join(" / ");
  return r.method === "tools/call" ? what : `${r.method} ${what}`.trim();
}

/** The words of status, as people read them. */
export const statuses: Record<Schemas["RequestStatus"], { word: string; kind: string }> = {
  ok: { word: "ok", kind: "done" },
  tool_error: { word: "tool error", kind: "failed" },
  answered: { word: "answered by a hook", kind: "skipped" },
  asked: { word: "asks the client", kind: "waiting" },
  held: { word: "waits for you", kind: "waiting" },
  denied: { word: "denied by a person", kind: "refused" },
  refused: { word: "refused", kind: "refused" },
  timeout: { word: "timeout", kind: "failed" },
  cancelled: { word: "cancelled", kind: "skipped" },
  crash: { word: "crash", kind: "failed" },
  error: { word: "error", kind: "failed" },
};
