import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { answerIn, gateKey } from "./gates";

const details = (seq: number, handle: string, submitted?: number) => ({
  run: { seq }, handle, position: { kind: "gate", id: "plan" },
  ...(submitted === undefined ? {} : { submission: { seq: submitted, step: "plan", output: "x" } }),
}) as Schemas["RunDetails"];
const event = (kind: string, via: string, data = {}) => ({ kind, by: { via }, data }) as unknown as Schemas["Event"];

test("a gate is known by its submission: a refused attempt keeps it, another output does not", () => {
  expect(gateKey(details(4, "h1", 3))).toBe(gateKey(details(9, "h2", 3)));
  expect(gateKey(details(4, "h1", 3))).not.toBe(gateKey(details(9, "h2", 8)));
  expect(gateKey(details(4, "h1"))).not.toBe(gateKey(details(9, "h2")));
});

test("an answer names the person and the choice", () => {
  const options = [{ id: "confirm", label: "Confirm" }];
  expect(answerIn([event("command_refused", "agent"), event("gate_answered", "terminal", { option: "confirm" })], options)).toBe("Answered by a person at a terminal: Confirm.");
  expect(answerIn([event("run_aborted", "browser")], options)).toBe("The run was aborted by a person in a browser.");
  expect(answerIn([event("command_refused", "agent")], options)).toBeUndefined();
});
