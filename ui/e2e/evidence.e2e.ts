import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accessible } from "./accessible";
import { checked } from "./fixtures";
import { approve, next } from "./seed";
import { setUp } from "./setup";

const setup = setUp([checked]);

// The agent lies once, is refused, does the work, and then completes a step that nothing checks.
test("a run shows what was checked, what was refused and what is only claimed", async () => {
  const { page, complaints } = setup.person;
  const started = await setup.client.call("workflow_start", { workflowId: "checked", goal: "Change the parser", project: setup.server.project });
  const id = String(started["runId"]);
  await page.goto(`/runs/${id}`);
  await page.getByText("Prompt and 2 criteria, 1 checked by Guideway").click();
  const position = page.getByRole("region", { name: "Where the run is" });
  await position.getByText("Guideway checks for itself").waitFor();
  await accessible(page, "a position with checks");

  await expect(next(setup.client, id, { output: "It is built, and all tests pass." })).rejects.toThrow("the report of the tests begins with ok");
  await page.getByRole("tab", { name: /Outputs/ }).click();
  const refused = page.locator(".output").filter({ hasText: "refused" });
  await refused.getByText("✕ failed").waitFor();

  writeFileSync(join(setup.server.project, "report.txt"), "ok  parser 0.4s\n");
  await next(setup.client, id, { output: "It is built, and all tests pass." });
  const gate = page.locator(".run-now");
  await gate.getByRole("button", { name: "Evidence" }).waitFor(); // live
  expect(await gate.locator(".label-badge, .handed-in > pre").allTextContents()).toEqual(["◆ Evidence", "It is built, and all tests pass."]);
  await accessible(page, "a gate with checks");
  await approve(setup.server, id);
  await next(setup.client, id, { output: "The users know." });
  await page.getByRole("button", { name: "1 of 2 steps proved" }).waitFor();
  const claim = page.locator(".output").first().getByRole("button", { name: "Claim" });
  await claim.focus();
  await page.getByText("Guideway executed no check.").filter({ visible: true }).waitFor();
  await page.keyboard.press("Escape");
  expect(await page.getByRole("tooltip").count()).toBe(0);
  await page.locator(".output .check-result > summary").first().click();
  await accessible(page, "outputs with checks");
  await page.goto(`/runs/${id}`);
  await page.getByText("Check failed").click();
  await accessible(page, "events with checks");
  expect(complaints).toEqual([]);
});
