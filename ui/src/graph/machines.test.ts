import { expect, test } from "vitest";
import { machineGraph, machineStates } from "./machines";

const machine = { states: [{ name: "start", agent: "writer" }, { name: "ask", input: { name: "verdict" } }, { name: "deep", sub_machine: "other" }, { name: "stop", input: "common_data.x" }] };

test("states are nodes, those that wait gates, and stop is the end", () => {
  const model = machineGraph({ machine, roles: {} }, [{ from: "start", to: "ask", sure: true }, { from: "ask", to: "stop", sure: false }]);
  expect(model.nodes.map((n) => [n.kind, n.title, n.note])).toEqual([
    ["step", "start", "agent writer"], ["gate", "ask", "waits for verdict"], ["step", "deep", "machine other"], ["end", "stop", undefined],
  ]);
  expect(model.edges).toEqual([{ from: "start", to: "ask" }, { from: "ask", to: "(end)", label: "may" }]);
});

test("a run stands in its state, and at the end when it is completed", () => {
  const run = { runId: "m", machine: "x", hash: "sha256:", status: "waiting" as const, states: ["start", "ask"], state: "ask", usage: { states: 0, calls: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, seconds: 0 }, cost: 0, createdAt: "", updatedAt: "", seq: 1 };
  expect([...machineStates(run)]).toEqual([["start", "done"], ["ask", "here"]]);
  expect(machineStates({ ...run, status: "completed" }).get("(end)")).toBe("done");
});
