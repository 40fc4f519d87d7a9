import { expect, test } from "vitest";
import { foldText } from "./fold";

const lines = (n: number) => Array.from({ length: n }, (_, i) => `line ${i + 1}`).join("\n");

test.each([
  ["a short text", "Looks good.", ""],
  ["24 lines", lines(24), ""],
  ["25 lines", lines(25), "1 more line"],
  ["62 lines", lines(62), "38 more lines"],
  ["one long line", "x".repeat(4_200), "1,200 more characters"],
  ["few long lines", `${"x".repeat(2_999)}\n${"y".repeat(2_000)}\nz`, "1 more line"],
])("%s names its rest", (_, text, rest) => {
  const folded = foldText(text);
  expect(folded.rest).toBe(rest);
  expect(text.startsWith(folded.head)).toBe(true);
  expect(folded.head === text).toBe(rest === "");
});
