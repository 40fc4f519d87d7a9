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
  const needs = page.getByRole("region", { name: "Needs you" });
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
