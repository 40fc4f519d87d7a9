import { json } from "@codemirror/lang-json";
import { EditorState } from "@codemirror/state";
import { expect, test } from "vitest";
import { placeInJSON, placeInYAML } from "./place";
import { offers } from "./schema";

const schema = {
  properties: { steps: { items: { $ref: "#/definitions/step" } }, name: { type: "string" } },
  definitions: { step: { required: ["id"], properties: { id: { description: "Names it." }, approval: { enum: ["human"] }, required: { type: "boolean" }, criteria: { items: { properties: { type: { enum: ["contains", "length"] } } } } } } },
};

/** A text with | where the cursor is. */
function at(text: string, format: "json" | "yaml") {
  const pos = text.indexOf("|");
  const state = EditorState.create({ doc: text.replace("|", ""), extensions: format === "json" ? [json()] : [] });
  const place = (format === "json" ? placeInJSON : placeInYAML)(state, pos);
  return place === undefined ? [] : offers(schema, place).map((o) => o.text);
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
