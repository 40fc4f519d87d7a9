import { expect, test } from "vitest";
import { readJSON } from "./written";

test.each([["1", 1], ['"9007199254740993"', "9007199254740993"], ["-9007199254740991", -9007199254740991], ["[0.1, null]", [0.1, null]]])("%s is taken as it stands", (text, value) => {
  expect(readJSON(text)).toEqual({ value });
});

test.each(["9007199254740993", '{"a": [1e400]}', "text", ""])("%s is not taken, and says why", (text) => {
  expect(readJSON(text)).toHaveProperty("problem");
});
