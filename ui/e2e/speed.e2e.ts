import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { launch, login, type Person } from "./browser";
import { Client } from "./mcp";
import { Server } from "./server";

// Measures, with 1,000 runs, 10,000 events in one of them and a graph of 200 nodes:
// npm run measure. The figures stand in bench/README.md.
const wanted = process.env["GUIDEWAY_SPEED"] !== undefined;
const runs = 1_000;
/** A round is an event, and each of its steps one more. */
const rounds = 1_000;
const stepsOfRound = 9;

const long = {
  id: "long", name: "Long", description: "Many rounds.", version: "1.0.0",
  steps: [{ id: "rounds", type: "loop", title: "Rounds", loop: { type: "for", count: rounds, maxIterations: rounds }, body: Array.from({ length: stepsOfRound }, (_, i) => ({ id: `work-${i}`, title: `Work ${i}`, prompt: "Work." })) }],
};
const wide = {
  id: "wide", name: "Wide", description: "Many steps.", version: "1.0.0",
  steps: Array.from({ length: 200 }, (_, i) => ({
    id: `step-${i}`, title: `Step ${i} of a workflow that has many`, prompt: "Do it.", ...(i % 3 === 0 ? { runCondition: { var: `v${i}`, equals: "a value" } } : {}),
  })),
};

let server: Server;
let browser: Browser;
let person: Person;
let longRun = "";
const dir = mkdtempSync(join(tmpdir(), "guideway-speed-"));

beforeAll(async () => {
  if (!wanted) return;
  const files = [long, wide].map((w) => {
    const file = join(dir, `${w.id}.json`);
    writeFileSync(file, JSON.stringify(w));
    return file;
  });
  server = await Server.start(files);
  browser = await launch();
  const client = await Client.connect(server.url, server.token);
  for (let i = 1; i < runs; i++) await client.call("workflow_start", { workflowId: "wide", goal: `Goal number ${i}` });
  let at = await client.call("workflow_start", { workflowId: "long", goal: "A long run" });
  longRun = String(at["runId"]);
  for (let i = 0; i < rounds * stepsOfRound; i++) at = await client.call("workflow_continue", { handle: at["handle"], output: `Part ${i} is done.` });
  person = await login(browser, server);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** What a trace says: the longest task of the page, and how long all above 50 ms took. */
interface Traced {
  longest: number;
  above50: number;
}

async function traced(page: Page, act: () => Promise<void>): Promise<Traced> {
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
  await act();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: { name: string; dur?: number; pid: number; tid: number; args?: { name?: string } }[] };
  const main = new Set(trace.traceEvents.filter((e) => e.name === "thread_name" && e.args?.name === "CrRendererMain").map((e) => `${e.pid}/${e.tid}`));
  const tasks = trace.traceEvents.filter((e) => e.name === "RunTask" || e.name === "ThreadControllerImpl::RunTask").filter((e) => main.has(`${e.pid}/${e.tid}`)).map((e) => (e.dur ?? 0) / 1000);
  return { longest: Math.max(0, ...tasks), above50: tasks.filter((t) => t > 50).reduce((a, b) => a + b, 0) };
}

async function paints(page: Page): Promise<{ first: number; whole: number }> {
  return page.evaluate(() => ({
    first: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1,
    whole: performance.now(),
  }));
}

const rows: string[] = [];
const round = (n: number) => Math.round(n);

async function opens(name: string, path: string, ready: string) {
  const { page } = person;
  let paint = { first: 0, whole: 0 };
  const t = await traced(page, async () => {
    await page.goto(path);
    await page.locator(ready).first().waitFor();
    paint = await paints(page);
  });
  rows.push(`| ${name}: open | ${round(paint.first)} | ${round(paint.whole)} | ${round(t.longest)} | ${round(t.above50)} | | |`);
}

async function does(name: string, act: () => Promise<void>) {
  const { page } = person;
  await page.evaluate(recordFrames);
  const t = await traced(page, act);
  const gaps = await page.evaluate(() => (globalThis as unknown as { frameGaps: number[] }).frameGaps);
  const mean = gaps.reduce((a, b) => a + b, 0) / Math.max(1, gaps.length);
  rows.push(`| ${name} | | | ${round(t.longest)} | ${round(t.above50)} | ${round(1000 / mean)} | ${round(Math.max(0, ...gaps))} |`);
}

/** Runs in the page: notes the time between two frames, until the page is left. */
function recordFrames() {
  const page = globalThis as unknown as { frameGaps: number[] };
  const gaps: number[] = [];
  page.frameGaps = gaps;
  let last: number | undefined;
  const frame = (at: number) => {
    if (page.frameGaps !== gaps) return; // a later recording has begun
    if (last !== undefined) gaps.push(at - last);
    last = at;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

describe.runIf(wanted)("speed", () => {
  test("of pages with much to show", async () => {
    const { page } = person;
    const wheel = async (selector: string) => {
      await page.locator(selector).first().hover();
      for (let i = 0; i < 20; i++) await page.mouse.wheel(0, 1_200);
      await page.waitForTimeout(300);
    };
    await opens("overview", "/", "table.runs a");
    await opens("1,000 runs", "/runs", "table.runs a");
    await does("1,000 runs: scroll to the end", () => wheel("table.runs"));
    await opens("10,000 events", `/runs/${longRun}`, ".event");
    await does("10,000 events: scroll", () => wheel(".timeline"));
    await does("10,000 events: find and choose a node", async () => {
      await page.getByLabel("Find a step").fill("Work 3");
      await page.keyboard.press("Enter");
      await page.locator('.react-flow__node[data-id="work-3"]:focus').waitFor();
      await page.keyboard.press("Enter");
      await page.getByText("Events of Work 3").waitFor();
    });
    await opens("200 nodes", "/workflows/wide", ".react-flow__node");
    await does("200 nodes: zoom and drag", async () => {
      const box = await page.locator(".graph-canvas").boundingBox();
      if (box === null) throw new Error("no graph");
      await page.mouse.move(box.x + 20, box.y + 200);
      for (let i = 0; i < 6; i++) await page.mouse.wheel(0, 200);
      await page.mouse.down();
      await page.mouse.move(box.x + 300, box.y + 20, { steps: 20 });
      await page.mouse.up();
    });
    await opens("200 nodes: the editor", "/workflows/wide/edit", ".cm-content");
    console.log(["| | first paint ms | usable ms | longest task ms | tasks above 50 ms, together | frames a second | longest frame ms |", "|---|---|---|---|---|---|---|", ...rows].join("\n"));
    expect(rows.length).toBeGreaterThan(8);
  }, 300_000);
});
