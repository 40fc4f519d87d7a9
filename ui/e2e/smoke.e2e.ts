import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, login, type Person } from "./browser";
import { withGateway } from "./equip";
import { release } from "./fixtures";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;

beforeAll(async () => {
  server = await Server.start([release], withGateway);
  browser = await launch();
  person = await login(browser, server);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

// Every main page renders without an error in the console. The other files test the
// pages in depth; they run every night.
test.each(["/", "/runs", "/sessions", "/workflows", "/workflows/release", "/gateway", "/requests", "/hooks", "/machines", "/tokens"])("%s renders", async (path) => {
  const { page, complaints } = person;
  complaints.length = 0;
  await page.goto(path);
  await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelector("h1, h3") !== null && document.querySelector(".skeleton") === null);
  expect(complaints).toEqual([]);
});
