import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible } from "./accessible";
import { launch, login, type Person } from "./browser";
import { Client } from "./mcp";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "guideway-calls-"));
  const config = join(home, "guideway.json");
  const upstream = { command: process.execPath, args: [join(import.meta.dirname, "fixtures/upstream.mjs"), config] };
  writeFileSync(config, JSON.stringify({ gateway: { tools: { hold: ["notes__say"] } }, upstreams: { notes: upstream } }));
  server = await Server.start([], { more: ["--config", config, "--toolsets", "steps,runs,gateway"] });
  browser = await launch();
  person = await login(browser, server);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(home, { recursive: true, force: true });
});

test("a held call is approved in the browser and sent once, and the next one is denied", async () => {
  const { page } = person;
  const client = await Client.connect(server.url, server.token);
  const said = { text: "hello", password: "correct horse battery" };
  expect(JSON.stringify(await client.answer("notes__say", said))).toContain("call-held");
  await page.goto("/");
  await page.getByRole("table", { name: "Held calls" }).getByRole("link", { name: "notes__say" }).waitFor();
  await page.goto("/calls");
  expect(await page.getByRole("table", { name: "Held calls" }).innerText()).not.toContain("correct horse");
  await accessible(page);
  await page.getByRole("link", { name: "notes__say" }).click();
  await page.getByLabel("Arguments").getByText("correct horse battery").waitFor();
  await accessible(page);
  await page.getByRole("button", { name: "Approve this call" }).click();
  await page.getByText("Approved: notes__say").waitFor();
  expect(JSON.stringify(await client.answer("notes__say", said))).not.toContain("call-held");
  expect(JSON.stringify(await client.answer("notes__say", said))).toContain("call-held");
  await page.goto("/calls");
  await page.getByRole("row", { name: /waiting/ }).getByRole("link").click();
  await page.getByLabel("Note to the agent (optional)").fill("not again");
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByText("Denied: notes__say").waitFor();
  expect(JSON.stringify(await client.answer("notes__say", said))).toContain("not again");
});
