import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { beginning } from "./document";
import { badEdges, marksOf } from "./marks";
import { sampleOf } from "./TestPanel";

const finding = (pointer: string, severity = "error", node?: string): Schemas["Diagnostic"] => ({ severity, code: "c", pointer, message: "m", ...(node === undefined ? {} : { node }) });

// Findings stand at what they are about, by the pointers of the document.
test("findings stand at their nodes and ways", () => {
  const found = [finding("/nodes/1/data/hook/script"), finding("/nodes/1", "warning"), finding("/edges/1/target", "error", "call"), finding("/nodes/9"), finding("/edges/0", "warning"), finding("/name")];
  const marks = marksOf(beginning, found, undefined, undefined);
  expect(marks.get("call")).toMatchObject({ errors: 1, warnings: 1 });
  expect(marks.get("start")).toMatchObject({ errors: 0, warnings: 0 });
  expect([...badEdges(found)]).toEqual([1]);
});

test("nodes show what they took, and a trial goes before the calls of late", () => {
  const stats: Schemas["HookStats"] = { success: true, requests: 10, nodes: [{ id: "call", count: 10, errors: 2, p50: 1.2, p99: 40 }, { id: "end", count: 10, errors: 0, p50: 0, p99: 10 }, { id: "gone", count: 1, errors: 0, p50: 1, p99: 1 }] };
  const hot = marksOf(beginning, [], undefined, stats);
  expect(hot.get("call")).toMatchObject({ note: "1.2 ms, p99 40 ms, 2 of 10 failed", heat: 1, failed: true });
  expect(hot.get("end")).toMatchObject({ heat: 0.25, failed: false });
  const trial: Schemas["HookTrial"] = { success: true, outcome: "error", request: { method: "tools/call" }, nodes: [{ id: "start", type: "start", ms: 0, console: [] }, { id: "call", type: "mcp-call", ms: 2, console: [], error: { code: "CALL_ERROR", message: "m" } }] };
  const tried = marksOf(beginning, [], trial, stats);
  expect(tried.get("call")?.note).toBe("CALL_ERROR");
  expect(tried.get("end")?.note).toBeUndefined();
});

test("a recorded request is a sample as far as it is kept", () => {
  const r: Schemas["Request"] = { id: "q_1", at: "2026-01-01T00:00:00Z", user: "ann", client: "claude", upstream: "files", tool: "read", method: "tools/call", status: "ok", ms: 1, bytesIn: 1, bytesOut: 1 };
  expect(sampleOf(r)).toEqual({ request: JSON.stringify({ name: "read", arguments: {} }, null, 2), client: "claude", server: "files" });
  const whole = sampleOf({ ...r, request: { text: '{"path":"a"}' }, response: { text: '{"content":[]}', cut: true } });
  expect(whole.request).toBe(JSON.stringify({ name: "read", arguments: { path: "a" } }, null, 2));
  expect(whole.response).toBeUndefined();
});
