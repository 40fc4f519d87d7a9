import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, login, type Person } from "./browser";
import { release } from "./fixtures";
import { begin } from "./seed";
import { Client } from "./mcp";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;
let client: Client;

beforeAll(async () => {
  server = await Server.start([release]);
  browser = await launch();
  client = await Client.connect(server.url, server.token);
  person = await login(browser, server);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

/** Has a page believe that its tab is shown or hidden: without a window every tab is visible. */
function show(page: Page, state: "visible" | "hidden") {
  return page.evaluate((visibilityState) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, value: visibilityState });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
}

test("eight tabs of one browser all read, and all follow the changes", async () => {
  const tabs = [person.page];
  while (tabs.length < 8) tabs.push(await person.context.newPage());
  for (const tab of tabs) {
    await tab.goto("/runs", { timeout: 10_000, waitUntil: "domcontentloaded" });
    await tab.getByRole("status").getByText("Live", { exact: true }).waitFor({ timeout: 10_000 });
  }
  await tabs[0]?.getByRole("link", { name: "Workflows" }).click();
  await tabs[0]?.getByRole("link", { name: "Release a version" }).waitFor({ timeout: 5_000 });
  await begin(client, "Seen in every tab");
  for (const tab of tabs.slice(1)) await tab.getByRole("link", { name: "Seen in every tab" }).waitFor({ timeout: 5_000 });

  // The tab that reads the stream is hidden, then closed: another one takes over.
  await show(tabs[0] as Page, "hidden");
  await begin(client, "Seen without the first tab");
  for (const tab of tabs.slice(1)) await tab.getByRole("link", { name: "Seen without the first tab" }).waitFor({ timeout: 5_000 });
  await tabs[1]?.close();
  await begin(client, "Seen without two tabs");
  for (const tab of tabs.slice(2)) await tab.getByRole("link", { name: "Seen without two tabs" }).waitFor({ timeout: 5_000 });

  // A hidden tab reads again when it is shown.
  await tabs[0]?.getByRole("link", { name: "Runs", exact: true }).click();
  await show(tabs[0] as Page, "visible");
  await tabs[0]?.getByRole("link", { name: "Seen without two tabs" }).waitFor({ timeout: 5_000 });
  for (const tab of tabs.slice(2)) await tab.close();
  expect(person.complaints).toEqual([]);
});
