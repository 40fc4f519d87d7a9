import { expect, test } from "vitest";
import type { Schemas } from "../api/client";
import { graphOf } from "./model";
import { labelsOf, statesOf } from "./states";

const loop = graphOf({
  steps: [
    { id: "plan", title: "Plan" },
    { id: "rounds", type: "loop", title: "Rounds", loop: { type: "for", count: 2 }, body: [{ id: "work", title: "Work" }, { id: "check", title: "Check" }] },
  ],
}) ?? { nodes: [], edges: [] };
const event = (kind: string, step: string) => ({ kind, data: { step } });

test("a new round takes back what the round before has done", () => {
  const first = [event("step_completed", "plan"), event("loop_entered", "rounds"), event("round_started", "rounds"), event("step_completed", "work"), event("step_completed", "check")];
  const second = [...first, event("round_started", "rounds")];
  const position = { kind: "step" as const, id: "work", loop: { id: "rounds", title: "Rounds", round: 2 } };
  const states = statesOf(loop, position, second);
  expect([states.get("plan"), states.get("rounds"), states.get("work"), states.get("check")]).toEqual(["done", "here", "here", undefined]);
});

test("parts of phases are known by their phase: two phases may name them alike", () => {
  const model = graphOf({ phases: [{ id: "one", steps: [{ id: "do" }], transitions: [{ to: "two" }] }, { id: "two", steps: [{ id: "do" }] }] }) ?? loop;
  const states = statesOf(model, { kind: "step", id: "do", phase: { id: "two", number: 2, of: 2 } }, [
    event("phase_entered", "one"), event("step_completed", "do"), event("phase_exited", "one"), event("phase_entered", "two"),
  ]);
  expect([states.get("one"), states.get("one/do"), states.get("two"), states.get("two/do")]).toEqual(["done", "done", "here", "here"]);
});

test("a step has the label of its last completion, in its phase", () => {
  const done = (step: string, label: "evidence" | "claim") => ({ kind: "step_completed", data: { step }, label }) as Schemas["Event"];
  const entered = (step: string) => event("phase_entered", step) as unknown as Schemas["Event"];
  expect(labelsOf([done("plan", "claim"), done("work", "evidence"), done("plan", "evidence")])).toEqual(new Map([["plan", "evidence"], ["work", "evidence"]]));
  expect(labelsOf([entered("one"), done("do", "evidence"), entered("two"), done("do", "claim")])).toEqual(new Map([["one/do", "evidence"], ["two/do", "claim"]]));
});
