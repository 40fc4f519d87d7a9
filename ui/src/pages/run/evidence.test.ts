import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { checksByEvent, commandLine, countProved, explainLabel, outcomeOf, readCheck } from "./evidence";

const check = { step: "build", key: "/1", type: "check", describe: "the check test of the project passes", passed: true, durationMs: 12, argv: ["go", "test"], workspace: { root: "/src", dirty: ["a.go"], dirtyCount: 1 } };
const event = (seq: number, kind: string, data: unknown, label?: string) => ({ seq, kind, data, by: { via: "agent" }, label }) as Schemas["Event"];

test("data of another form than a result is no result", () => {
  expect(readCheck(event(1, "check_run", check))).toEqual(check);
  for (const wrong of [undefined, null, "passed", [], {}, { ...check, describe: undefined }, { ...check, passed: "yes" }, { ...check, durationMs: null }, { ...check, argv: "go test" }, { ...check, argv: [1] }, { ...check, workspace: { dirty: "a.go" } }, { ...check, head: {} }]) {
    expect(readCheck(event(1, "check_run", wrong)), JSON.stringify(wrong)).toBeUndefined();
  }
  expect(readCheck(event(1, "step_completed", check))).toBeUndefined();
});

test("checks belong to the event that they precede", () => {
  const failed = { ...check, passed: false };
  const events = [
    event(1, "run_started", {}), event(2, "check_run", failed), event(3, "check_run", check), event(4, "command_refused", {}),
    event(5, "check_run", check), event(6, "check_run", { passed: "forged" }), event(7, "step_completed", {}), event(8, "step_completed", {}),
  ];
  expect(checksByEvent(events)).toEqual(new Map([[4, [failed, check]], [7, [check]]]));
});

test("only completed steps with the label evidence are proved", () => {
  const events = [event(1, "check_run", check), event(2, "step_completed", {}, "evidence"), event(3, "command_refused", {}), event(4, "step_completed", {}, "claim"), event(5, "step_skipped", {})];
  expect(countProved(events)).toEqual({ proved: 1, done: 2 });
});

test("a check that was not executed to its end has neither passed nor failed", () => {
  const outcomes = [{}, { passed: false }, { passed: false, inconclusive: true }, { passed: false, undefined: true }].map((part) => outcomeOf({ ...check, ...part } as Schemas["CheckResult"]));
  expect(outcomes).toEqual(["passed", "failed", "not finished", "not defined"]);
});

test("a claim has its reason", () => {
  const passed = check as Schemas["CheckResult"];
  const missing = { ...passed, passed: false, undefined: true };
  expect(explainLabel("evidence", [passed], false)).toContain("Guideway executed a check that decided");
  expect(explainLabel("claim", [], false)).toContain("executed no check");
  expect(explainLabel("claim", [missing], false)).toContain("does not define");
  expect(explainLabel("claim", [passed, missing], false)).toContain("did not decide");
  expect(explainLabel("claim", [passed], true)).toContain("imported bundle");
});

test("a command shows where its arguments begin and end", () => {
  expect(commandLine(["go", "test", "./...", "-run", "A B", "", "$(rm)"])).toBe(`go test ./... -run "A B" "" "$(rm)"`);
});
