import { json } from "@codemirror/lang-json";
import { EditorState } from "@codemirror/state";
import { expect, test } from "vitest";
import steps from "../../../../internal/workflow/steps/schema.json";
import phases from "../../../../internal/workflow/phases/schema/workflow.schema.json";
import { placeInJSON, placeInYAML } from "./place";
import { offers } from "./schema";

const schema = {
  properties: { steps: { items: { $ref: "#/definitions/step" } }, name: { type: "string" } },
  definitions: { step: { required: ["id"], properties: { id: { description: "Names it." }, approval: { enum: ["human"] }, required: { type: "boolean" }, criteria: { items: { properties: { type: { enum: ["contains", "length"] } } } } } } },
};

/** A text with | where the cursor is. */
function at(text: string, format: "json" | "yaml", of: unknown = schema) {
  const pos = text.indexOf("|");
  const state = EditorState.create({ doc: text.replace("|", ""), extensions: format === "json" ? [json()] : [] });
  const place = (format === "json" ? placeInJSON : placeInYAML)(state, pos);
  return place === undefined ? [] : offers(of, place).map((o) => o.text);
}

const ofAStep = ["id", "approval", "required", "criteria"];

test.each([
  ["{|}", ["steps", "name"]],
  ['{"steps": [{"|"}]}', ofAStep],
  ['{"steps": [{"id": "a"}, {"id": "b", "|": 1}]}', ofAStep],
  ['{"steps": [{"approval": "|"}]}', ["human"]],
  ['{"steps": [{"criteria": [{"type": "|"}]}]}', ["contains", "length"]],
  ['{"name": "|"}', []],
])("in JSON %s", (text, offered) => expect(at(text, "json")).toEqual(offered));

test.each([
  ["|", ["steps", "name"]],
  ["steps:\n  - id: a\n    |", ofAStep],
  ["steps:\n  - id: a\n  - |", ofAStep],
  ["steps:\n- id: a\n  app|", ofAStep],
  ["steps:\n  - id: a\n    approval: h|", ["human"]],
  ["steps:\n  - id: a\n    required: |", ["true", "false"]],
  ["steps:\n  - id: a\n    criteria:\n      - type: c|", ["contains", "length"]],
  ["steps:\n  - id: a\nna|", ["steps", "name"]],
])("in YAML %j", (text, offered) => expect(at(text, "yaml")).toEqual(offered));

const fields = {
  command: ["type", "message", "condition", "argv", "dir", "env", "timeout", "exitCode", "matches", "excludes"],
  check: ["type", "message", "condition", "check", "with"],
  contains: ["type", "message", "value", "pattern", "flags", "min", "max", "schema", "condition"],
};
const inSteps = "steps:\n  - id: a\n    validationCriteria:\n";
const inPhases = "phases:\n  - id: a\n    steps:\n      - id: b\n        validationCriteria:\n          and:\n";

test.each([
  [steps, `${inSteps}      - type: command\n        |`, fields.command],
  [steps, `${inSteps}      - type: check\n      - type: command\n        |\n      - type: check`, fields.command],
  [steps, `${inSteps}      - |\n        type: check # of the project`, fields.check],
  [steps, `${inSteps}      - message: x\n        type: contains\n        |`, fields.contains],
  [steps, `${inSteps}      or:\n        - not:\n            type: "check"\n            |`, fields.check],
  [phases, `${inPhases}            - type: command\n              |`, fields.command],
])("the fields of a rule in YAML %#", (of, text, want) => expect(at(text, "yaml", of).sort()).toEqual([...want].sort()));

test("the fields and types of a rule in JSON", () => {
  const rule = (text: string) => at(`{"steps": [{"validationCriteria": [${text}]}]}`, "json", steps);
  expect(rule('{"type": "check", "|"}').sort()).toEqual([...fields.check].sort());
  expect(rule('{"with": {"type": "command"}, "type": "check", "|": 1}').sort()).toEqual([...fields.check].sort());
  expect(rule('{"type": "|"}')).toEqual(["contains", "regex", "length", "schema", "check", "command", "file", "git", "http", "tool", "protect"]);
  expect(rule('{"type": "file", "exists": |}')).toEqual([]);
  expect(rule('{"|"}')).toContain("paths");
});
