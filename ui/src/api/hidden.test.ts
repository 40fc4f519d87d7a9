import { expect, test } from "vitest";
import { escapeData, escapeHidden, isOnlyShown } from "./hidden";

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

test("what is edited and saved stays as it is", () => {
  expect(["/api/runs", "http://127.0.0.1:3000/api/runs/r1?limit=0", "/api/sessions/w/s", "/api/workflows/release"].filter((u) => !isOnlyShown(u))).toEqual([]);
  expect(["/api/workflows/release/source", "/api/runs/r1/export", "/api/hooks/guard", "/api/upstreams/self", "/api/runsheet"].filter(isOnlyShown)).toEqual([]);
});
