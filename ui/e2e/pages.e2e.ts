import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible } from "./accessible";
import { launch, login, type Person } from "./browser";
import { equip, withGateway, type Equipped } from "./equip";
import { release } from "./fixtures";
import { seed, type Seeded } from "./seed";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;
let data: Seeded & Equipped;

beforeAll(async () => {
  server = await Server.start([release], withGateway);
  browser = await launch();
  person = await login(browser, server);
  data = { ...(await seed(server)), ...(await equip(server, person.page)) };
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const pages: Record<string, (d: Seeded & Equipped) => string> = {
  overview: () => "/",
  runs: () => "/runs",
  "runs, narrowed": () => "/runs?status=waiting&person=true",
  "runs, searched": () => "/runs?q=release",
  "a run that works": (d) => `/runs/${d.working}`,
  "the context of a run": (d) => `/runs/${d.working}?tab=context`,
  "the checkpoints of a run": (d) => `/runs/${d.working}?tab=checkpoints`,
  "the outputs of a run": (d) => `/runs/${d.completed}?tab=outputs`,
  "a run at a gate": (d) => `/runs/${d.waiting}`,
  "no such run": () => "/runs/r_none",
  sessions: () => "/sessions",
  "a session": (d) => `/dashboard/${d.session.id}?workflow=${d.session.workflow}`,
  workflows: () => "/workflows",
  "a workflow": () => "/workflows/release",
  "an editor": () => "/workflows/release/edit",
  "a trial": () => "/workflows/release/try",
  "a new workflow": () => "/new-workflow",
  gateway: () => "/gateway",
  "an upstream": () => "/gateway/notes",
  "an upstream that fails": () => "/gateway/tickets",
  "a new upstream": () => "/new-upstream",
  "a new upstream by form": () => "/new-upstream?tab=form",
  tokens: () => "/tokens",
  requests: () => "/requests",
  "a request": (d) => `/requests/${d.request}`,
  hooks: () => "/hooks",
  "a hook graph": () => "/hooks/tidy?node=trim",
  "a new hook graph": () => "/new-hook",
  machines: () => "/machines",
  "a machine": () => "/machines/code-and-review",
  "a run of a machine that asks": (d) => `/machine-runs/${d.asking}`,
  "a run of a machine that has ended": (d) => `/machine-runs/${d.ended}`,
  "the reference of the API": () => "/api/docs",
  "the events of a run of a machine": (d) => `/machine-runs/${d.ended}?tab=events`,
};

// What axe calls serious or critical is on no page, in either look, wide or
// narrow; no script fails, nothing is asked of another host, and nothing that the
// policy stops is tried. Each address is opened as a link from elsewhere opens it.
test.each(Object.keys(pages))("%s", async (name) => {
  const { page, complaints } = person;
  complaints.length = 0;
  await page.goto(pages[name]?.(data) ?? "/");
  await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
  await page.waitForFunction(() => document.querySelector("h1, h3") !== null && document.querySelector(".skeleton") === null);
  await accessible(page, name);
  expect(complaints.filter((c) => !(name === "no such run" && c.includes("404")))).toEqual([]);
});

test("keys lead to pages, and the skip link to the page", async () => {
  const { page } = person;
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto("/");
  await page.getByRole("heading", { name: "Recent runs" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement?.getAttribute("type"))).toBe("search");
  await page.goto("/workflows");
  await page.getByRole("heading", { name: "Workflows", level: 1 }).waitFor();
  await page.keyboard.press("Tab");
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to the content");
});

test("a browser without the login is told how to get in", async () => {
  const stranger = await browser.newContext({ baseURL: server.url });
  const page = await stranger.newPage();
  for (const path of ["/", "/runs", "/workflows/release/edit"]) {
    const got = await page.goto(path);
    expect(got?.status()).toBe(401);
    expect(await page.textContent("main")).toContain("guideway open");
  }
  await stranger.close();
});
