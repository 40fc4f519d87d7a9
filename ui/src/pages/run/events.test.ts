import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { hasOutput, told } from "./events";

const event = (kind: string, data: unknown) => ({ seq: 1, kind, data }) as Schemas["Event"];

test("a refused attempt has its output, and the failed criteria apart from it", () => {
  const refused = event("command_refused", { step: "plan", rule: "validation", output: "Looks good.", notes: "Done.", issues: ["name the version"] });
  expect(told(refused, new Map([["plan", "Plan the release"]]))).toMatchObject({ kind: "refused", about: "Plan the release · validation", text: "Looks good.\n\nDone.", failed: ["name the version"] });
  expect(hasOutput(refused)).toBe(true);
});

test("an attempt without an output is no output", () => {
  expect([event("command_refused", { rule: "gate-needs-person" }), event("step_completed", {}), event("gate_opened", {})].map(hasOutput)).toEqual([false, true, false]);
});

test("the event of a check has its result in words", () => {
  const check = { step: "plan", key: "/0", type: "check", describe: "the check test of the project passes", passed: false, durationMs: 3 };
  expect(told(event("check_run", check), new Map([["plan", "Plan the release"]]))).toMatchObject({ word: "Check failed", kind: "refused", about: "Plan the release · the check test of the project passes" });
  expect(told(event("check_run", { ...check, undefined: true }), new Map())).toMatchObject({ word: "Check not defined", kind: "skipped" });
  expect(told(event("check_run", { passed: true }), new Map()).word).toBe("Check run"); // no result
});
