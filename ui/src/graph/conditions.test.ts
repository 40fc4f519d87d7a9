import { expect, test } from "vitest";
import { conditionWords, loopWords } from "./conditions";

test.each([
  [{ var: "size", equals: "large" }, "size is large"],
  [{ var: "n", gte: 3 }, "n ≥ 3"],
  [{ and: [{ var: "a", equals: true }, { or: [{ var: "b", equals: 1 }, { var: "c", equals: 2 }] }] }, "a is true and (b is 1 or c is 2)"],
  [{ not: { var: "a", equals: true } }, "not a is true"],
  [{ type: "simple", variable: "x.y", operator: "!=", value: null }, "x.y is not null"],
  [{ type: "simple", variable: "x", operator: "exists" }, "x exists"],
  [{ type: "or", conditions: [{ type: "simple", variable: "a", operator: ">", value: 1 }, { type: "simple", variable: "b", operator: "notExists" }] }, "a > 1 or b does not exist"],
  [undefined, undefined],
])("%j is %s", (condition, words) => expect(conditionWords(condition)).toBe(words));

test("loops say how far they go", () => {
  expect([{ type: "for", count: 3 }, { type: "forEach", items: "parts" }, { type: "while", condition: { var: "a", equals: 1 } }].map(loopWords))
    .toEqual(["3 times", "for each of parts", "while a is 1"]);
});
