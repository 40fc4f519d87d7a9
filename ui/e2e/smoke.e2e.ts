import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, login, type Person } from "./browser";
import { withGateway } from "./equip";
import { release } from "./fixtures";
import { Client } from "./mcp";
import { begin, next } from "./seed";
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

test("a completed step has its label", async () => {
  const { page, complaints } = person;
  complaints.length = 0;
  const client = await Client.connect(server.url, server.token);
  const id = await begin(client, "Release 4.2");
  await next(client, id, { output: "The next version is 4.2.0." });
  await page.goto(`/runs/${id}?tab=outputs`);
  const claim = page.locator(".output").getByRole("button", { name: "Claim" });
  await claim.focus();
  await page.getByRole("tooltip").getByText("Only the agent reports that the step is done.").waitFor();
  await page.locator(".run-now").getByRole("button", { name: "Claim" }).waitFor();
  await page.getByRole("button", { name: "0 of 1 step proved" }).waitFor();
  expect(complaints).toEqual([]);
});
