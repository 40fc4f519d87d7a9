import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { release } from "./fixtures";
import { begin } from "./seed";
import { setUp } from "./setup";

const setup = setUp([release]);

/** Has a page believe that its tab is shown or hidden: without a window every tab is visible. */
function show(page: Page, state: "visible" | "hidden") {
  return page.evaluate((visibilityState) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, value: visibilityState });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

test("eight tabs of one browser all read, and all follow the changes", async () => {
  const tabs = [setup.person.page];
  while (tabs.length < 8) tabs.push(await setup.person.context.newPage());
  for (const tab of tabs) {
    await tab.goto("/runs", { timeout: 10_000, waitUntil: "domcontentloaded" });
    await tab.getByRole("status").getByText("Live", { exact: true }).waitFor({ timeout: 10_000 });
  }
  await tabs[0]?.getByRole("link", { name: "Workflows" }).click();
  await tabs[0]?.getByRole("link", { name: "Release a version" }).waitFor({ timeout: 5_000 });
  await begin(setup.client, "Seen in every tab");
  for (const tab of tabs.slice(1)) await tab.getByRole("link", { name: "Seen in every tab" }).waitFor({ timeout: 5_000 });

  // The tab that reads the stream is hidden, then closed: another one takes over.
  await show(tabs[0] as Page, "hidden");
  await begin(setup.client, "Seen without the first tab");
  for (const tab of tabs.slice(1)) await tab.getByRole("link", { name: "Seen without the first tab" }).waitFor({ timeout: 5_000 });
  await tabs[1]?.close();
  await begin(setup.client, "Seen without two tabs");
  for (const tab of tabs.slice(2)) await tab.getByRole("link", { name: "Seen without two tabs" }).waitFor({ timeout: 5_000 });

  // A hidden tab reads again when it is shown.
  await tabs[0]?.getByRole("link", { name: "Runs", exact: true }).click();
  await show(tabs[0] as Page, "visible");
  await tabs[0]?.getByRole("link", { name: "Seen without two tabs" }).waitFor({ timeout: 5_000 });
  for (const tab of tabs.slice(2)) await tab.close();
  expect(setup.person.complaints).toEqual([]);
});

test("a page whose code cannot be loaded says why, in its frame, and comes back", async () => {
  const id = await begin(setup.client, "Opened while the server is away");
  const page = await setup.person.context.newPage();
  await page.goto("/runs");
  const link = page.getByRole("link", { name: "Opened while the server is away" });
  await link.waitFor();
  await page.route(/\/assets\/RunPage|\/api\//, (route) => route.abort());
  await link.click();
  await page.getByRole("alert").getByRole("heading", { name: "The server cannot be reached" }).waitFor();
  await page.getByRole("link", { name: "Workflows" }).click();
  await page.getByRole("heading", { name: "Workflows", level: 1 }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "The server cannot be reached" }).waitFor();
  await page.unrouteAll();
  await page.getByRole("heading", { name: "Plan the release" }).waitFor();
  expect(page.url()).toContain(id);
  await page.close();
});

test("after an update of the server a tab is reloaded once", async () => {
  const id = await begin(setup.client, "Opened after an update");
  const page = await setup.person.context.newPage();
  let loads = 0;
  page.on("load", () => loads++);
  await page.goto("/runs");
  const link = page.getByRole("link", { name: "Opened after an update" });
  await link.waitFor();
  await page.route(/\/assets\/RunPage/, (route) => route.fulfill({ status: 404, body: "" }));
  await link.click();
  await page.getByRole("heading", { name: "The server was updated" }).waitFor();
  expect(loads).toBe(2);
  await page.unrouteAll();
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByRole("heading", { name: "Plan the release" }).waitFor();
  expect(page.url()).toContain(id);
  await page.close();
});
