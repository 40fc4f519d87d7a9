import { readFileSync } from "node:fs";
import type { Browser } from "playwright-core";
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

test("the cookie alone reads nothing, and the page explains how to log in", async () => {
  await begin(client, "Only for the page's key");
  const page = await person.context.newPage();
  await page.goto("/runs");
  await page.getByRole("link", { name: "Only for the page's key" }).waitFor();
  const answers = await page.evaluate(async () => {
    const status = async (path: string) => (await fetch(path)).status;
    const stream = new EventSource("/api/events");
    await new Promise((ended) => (stream.onerror = ended));
    return [await status("/api/runs"), await status("/api/me"), stream.readyState];
  });
  expect(answers).toEqual([401, 401, 2]);
  const key = await page.evaluate(() => {
    const kept = localStorage.getItem("guideway-key") ?? "";
    localStorage.removeItem("guideway-key");
    return kept;
  });
  await page.goto("/runs");
  await page.getByRole("alert").getByText("This browser is not logged in").waitFor();
  await page.getByText("This browser is not logged in at this address.").waitFor();
  expect(await page.getByText("Only for the page's key").count()).toBe(0);
  await page.evaluate((kept) => localStorage.setItem("guideway-key", kept), key);
  await page.reload();
  await page.getByRole("link", { name: "Only for the page's key" }).waitFor();
  await page.getByRole("status").getByText("Live", { exact: true }).waitFor();
  await page.close();
});

test("a run is exported byte by byte", async () => {
  const id = await begin(client, "Exported by a person");
  const page = await person.context.newPage();
  await page.goto(`/runs/${id}`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const given = await fetch(`${server.url}/api/runs/${id}/export`, { headers: { Authorization: `Bearer ${server.token}` } });
  expect(download.suggestedFilename()).toBe("guideway-run.json");
  const withoutTime = (text: string) => text.replace(/"exported[A-Za-z]*": ?"[^"]*"/, "");
  expect(withoutTime(readFileSync(await download.path(), "utf8"))).toBe(withoutTime(await given.text()));
  await page.close();
});
