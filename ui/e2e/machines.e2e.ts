import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible } from "./accessible";
import { launch, login, type Person } from "./browser";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;

beforeAll(async () => {
  server = await Server.start();
  browser = await launch();
  person = await login(browser, server);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test("a bundled machine runs on its recording, waits for a person, and is forked", async () => {
  const { page, complaints } = person;
  complaints.length = 0;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto("/machines");
  await page.getByText("No machine has run yet").waitFor();
  await page.getByRole("listitem").filter({ hasText: "support-desk" }).getByRole("button", { name: "Run the demonstration" }).click();

  // It comes to the state that asks, and a person answers in the browser.
  const needs = page.getByRole("region", { name: "Needs input" });
  await needs.getByRole("button", { name: "approve" }).waitFor();
  await page.locator('.react-flow__node[aria-label*="where the run is" i], .react-flow__node[aria-label*="here" i]').first().waitFor();
  await accessible(page);
  await needs.getByRole("button", { name: "approve" }).click();
  await page.getByText("completed").first().waitFor();
  await page.getByRole("heading", { name: "Result" }).waitFor();
  expect(await page.locator(".machine-message").count()).toBeGreaterThan(1);

  // From an event a new run goes its own way.
  const address = page.url();
  await page.getByRole("tab", { name: /Events/ }).click();
  await page.getByRole("listitem").filter({ hasText: "State entered" }).last().getByRole("button", { name: "Fork from here" }).click();
  await page.getByText("This is the new run").waitFor();
  expect(page.url().split("?")[0]).not.toBe(address);
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.getByText("cancelled").first().waitFor();

  // The definition stands beside its source.
  await page.goto("/machines/code-and-review");
  await page.getByRole("heading", { name: "Script" }).waitFor();
  expect(await page.locator(".react-flow__node").count()).toBeGreaterThan(3);
  expect(complaints).toEqual([]);
});

test("runs of machines are read page by page, and drawn as far as they are seen", async () => {
  const { page, complaints } = person;
  complaints.length = 0;
  const row = (n: number) => ({ runId: `m_${String(n).padStart(23, "0")}`, machine: "desk", goal: `run ${n}`, status: "completed", state: "stop", person: false, createdAt: new Date(0).toISOString(), updatedAt: new Date(0).toISOString() });
  const asked: string[] = [];
  await page.route("**/api/machine-runs?**", async (route) => {
    const cursor = new URL(route.request().url()).searchParams.get("cursor");
    asked.push(cursor ?? "first");
    const from = cursor === null ? 0 : Number(cursor);
    const runs = Array.from({ length: 200 }, (_, i) => row(from + i));
    await route.fulfill({ json: { success: true, runs, ...(from < 400 ? { next: String(from + 200) } : {}) } });
  });
  await page.goto("/machines");
  const table = page.getByRole("table", { name: "Runs of machines" });
  await table.getByRole("link", { name: "desk: run 0", exact: true }).waitFor();
  const more = page.getByRole("button", { name: "Show older runs" });
  await more.click();
  await page.locator('table[aria-rowcount="401"]').waitFor();
  await more.click();
  await page.locator('table[aria-rowcount="601"]').waitFor();
  await more.waitFor({ state: "detached" });
  expect(asked).toEqual(expect.arrayContaining(["first", "200", "400"]));
  expect(await table.getByRole("row").count()).toBeLessThan(150);
  await page.getByRole("link", { name: "Start a machine" }).click();
  await table.getByRole("link", { name: "desk: run 599", exact: true }).waitFor();
  await page.unroute("**/api/machine-runs?**");
  expect(complaints).toEqual([]);
});
