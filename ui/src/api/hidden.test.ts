import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { escapeData, escapeHidden, escapeScript, isOnlyShown } from "./hidden";

interface Shared { ignorable: [string, string][]; cases: { name: string; text: string; prose: string; script: string }[] }

const shared = JSON.parse(readFileSync(join(import.meta.dirname, "../../../internal/platform/visible/testdata/cases.json"), "utf8")) as Shared;

test.each(shared.cases)("$name: as in internal/platform/visible", ({ text, prose, script }) => {
  expect(escapeHidden(text)).toBe(prose);
  expect(escapeScript(text)).toBe(script);
});

test("every ignorable character is hidden", () => {
  const shown: string[] = [];
  for (const [first, last] of shared.ignorable) {
    for (let c = parseInt(first, 16); c <= parseInt(last, 16); c++) {
      const code = c.toString(16).toUpperCase().padStart(4, "0");
      if (escapeHidden(`a${String.fromCodePoint(c)}b`) !== `a\\u{${code}}b`) shown.push(code);
    }
  }
  expect(shown).toEqual([]);
});

test.each([
  ["safe \u202Eelpmaxe.live", "safe \\u{202E}elpmaxe.live"],
  ["a\u200Bb\uFEFFc", "a\\u{200B}b\\u{FEFF}c"],
  ["\u001B[31mred\u0000", "\\u{001B}[31mred\\u{0000}"],
  ["shown\rhidden", "shown\\u{000D}hidden"],
  ["one\u2028two", "one\\u{2028}two"],
  ["\u{E0041}", "\\u{E0041}"],
  ["a" + "\u0301".repeat(6), "a" + "\u0301".repeat(4) + "\\u{0301}\\u{0301}"],
])("%j is shown as %s", (text, want) => expect(escapeHidden(text)).toBe(want));

test.each(["one\n\ttwo\r\nthree", "café", "cafe\u0301", "مرحبا", "日本語", "✔️ 😀"])("%j stays as it is", (text) => expect(escapeHidden(text)).toBe(text));

test("texts and names are escaped at every depth", () => {
  expect(escapeData({ "a\u200B": [{ b: "\u202E" }, 1, null, true] })).toEqual({ "a\\u{200B}": [{ b: "\\u{202E}" }, 1, null, true] });
});

test("the script of a machine keeps no selector", () => {
  expect(escapeData({ description: "путь\uFE0F", script: "путь\uFE0F" })).toEqual({ description: "путь\uFE0F", script: "путь\\u{FE0F}" });
});

test("what is edited and saved stays as it is", () => {
  expect(["/api/runs", "http://127.0.0.1:3000/api/runs/r1?limit=0", "/api/sessions/w/s", "/api/workflows/release"].filter((u) => !isOnlyShown(u))).toEqual([]);
  expect(["/api/workflows/release/source", "/api/runs/r1/export", "/api/hooks/guard", "/api/upstreams/self", "/api/runsheet"].filter(isOnlyShown)).toEqual([]);
});
