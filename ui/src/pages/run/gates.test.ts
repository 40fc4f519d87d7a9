import { expect, test } from "vitest";
import type { Schemas } from "../../api/client";
import { answerIn, gateKey, obstacle, wordsOf } from "./gates";

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

test("a gate that needs several persons names them, and refuses the second answer of one", () => {
  const approval = { by: ["approver", "admin"] as ("approver" | "admin")[], count: 2 };
  expect(wordsOf(approval)).toBe("Needs the same answer from 2 persons with the role approver or admin; one person is enough to send the step back.");
  expect(wordsOf({ by: ["admin"] })).toBe("Needs a person with the role admin.");
  const position = { kind: "gate", approval, options: [{ id: "confirm", label: "Confirm" }, { id: "revise", label: "Revise" }], votes: [{ user: "ada", option: "confirm" }] } as Schemas["Position"];
  const me = (user: string, ...roles: string[]) => ({ user, roles }) as unknown as Schemas["Me"];
  expect(obstacle(position, me("ada", "approver"), "confirm")).toBe("You gave the answer Confirm. Another person must give the same.");
  expect(obstacle(position, me("ada", "approver"), "revise")).toBeUndefined();
  expect(obstacle(position, me("bob", "approver"), "confirm")).toBeUndefined();
  expect(obstacle(position, me("eve", "operator"), "confirm")).toBe("Your roles (operator) cannot answer this gate.");
  expect(obstacle(position, undefined, "confirm")).toBeUndefined();
});
