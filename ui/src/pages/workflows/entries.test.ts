import { expect, test } from "vitest";
import { entriesOf } from "./entries";

// The catalog is one list: whoever looks for a definition need not know its dialect.
test("definitions of all dialects stand in one list, each with its own page", () => {
  const from = { source: "project", path: "p" };
  const list = entriesOf({
    workflows: [{ ...from, id: "release", name: "Release", description: "d", version: "1.0.0", dialect: "steps", hash: "h" }],
    machines: [
      { ...from, name: "a desk", description: "d", inputs: [], agents: [], states: 2, demo: false },
      { ...from, name: "torn", description: "", inputs: [], agents: [], states: 0, demo: false, error: "no states" },
    ],
    hooks: [
      { ...from, id: "guard", name: "Guard", state: "off", order: 50, enabled: false, own: true, writable: true },
      { ...from, id: "bad", state: "broken", order: 50, enabled: false, own: true, writable: true },
    ],
  });
  expect(list.map((e) => [e.name, e.dialect, e.href])).toEqual([
    ["a desk", "machines", "/machines/a%20desk"],
    ["Guard", "hooks", "/hooks/guard"],
    ["Release", "steps", "/workflows/release"],
  ]);
});
