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
