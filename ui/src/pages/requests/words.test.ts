import { expect, test } from "vitest";
import { target, took } from "./words";

test("times show their size", () => {
  expect([0.123, 9.999, 45.6, 1500].map(took)).toEqual(["0.12 ms", "10.00 ms", "46 ms", "1.5 s"]);
});

test("a request says what it was for", () => {
  expect(target({ method: "tools/call", upstream: "files", tool: "read" })).toBe("files / read");
  expect(target({ method: "tools/call", tool: "nothing" })).toBe("nothing");
  expect(target({ method: "tools/list", upstream: "files", tool: "" })).toBe("tools/list files");
});
