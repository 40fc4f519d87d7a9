import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { accessible } from "./accessible";
import { launch, login, type Person } from "./browser";
import { Client } from "./mcp";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;
let client: Client;

beforeAll(async () => {
  server = await Server.start([], { gateway: true });
  browser = await launch();
  client = await Client.connect(server.url, server.token);
  person = await login(browser, server);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const graph = {
  id: "watch", name: "Watch", workflowType: "tools/call", bindings: [{ upstream: "self", tool: "workflow_get" }], enabled: false,
  nodes: [
    { id: "start", type: "start", position: { x: 0, y: 0 }, data: { label: "Start" } },
    { id: "note", type: "hook", position: { x: 0, y: 0 }, data: { label: "Note the id", hook: { id: "h", blocking: true, script: "console.log('asked for', context.request.params.arguments.id); context.request.params.arguments.mode = 'preview';" } } },
    { id: "call", type: "mcp-call", position: { x: 0, y: 0 }, data: { label: "Call" } },
    { id: "end", type: "end", position: { x: 0, y: 0 }, data: { label: "End" } },
  ],
  edges: [{ source: "start", target: "note" }, { source: "note", target: "call" }, { source: "call", target: "end" }],
  createdAt: 0, updatedAt: 0,
};

/** Saves and enables the graph, as the logged in person. */
async function stand(page: Page) {
  const failure = await page.evaluate(async (text) => {
    const headers = { "Content-Type": "application/json", "X-Guideway-Key": localStorage.getItem("guideway-key") ?? "" };
    const saved = await fetch("/api/hooks/watch", { method: "PUT", headers, body: JSON.stringify({ source: "user", base: "", text }) });
    const answer = await saved.json();
    if (!saved.ok) return JSON.stringify(answer);
    const enabled = await fetch("/api/hooks/watch/enable", { method: "POST", headers, body: JSON.stringify({ pin: answer.hook.pin }) });
    return enabled.ok ? "" : enabled.text();
  }, JSON.stringify(graph));
  expect(failure).toBe("");
}

/** Counts the requests that a query finds. */
function count(page: Page, query: string): Promise<number> {
  return page.evaluate(async (q) => {
    const headers = { "X-Guideway-Key": localStorage.getItem("guideway-key") ?? "" };
    const answer = await fetch(`/api/requests?${q}`, { headers });
    return (await answer.json()).requests.length;
  }, query);
}

test("calls come by themselves, are narrowed, and show what hooks did", async () => {
  const { page, complaints } = person;
  await page.goto("/requests");
  await page.getByText("No requests yet").waitFor();
  await client.call("self__workflow_list", {});
  const table = page.getByRole("table", { name: "Requests" });
  await table.getByRole("link", { name: "self / workflow_list" }).waitFor();
  await stand(page);
  await expect.poll(async () => {
    await client.answer("self__workflow_get", { id: "coding-task" });
    return (await count(page, "hook=watch")) > 0;
  }, { timeout: 20_000 }).toBe(true);
  await expect(client.call("self__workflow_get", { id: "none" })).rejects.toThrow();
  await page.getByLabel("Status").selectOption("failed");
  await table.getByText("tool error").first().waitFor();
  expect(await table.getByRole("link", { name: "self / workflow_list" }).count()).toBe(0);
  expect(new URL(page.url()).searchParams.get("status")).toBe("failed");
  await accessible(page);
  await page.goto("/requests?hook=watch");
  await table.getByRole("link", { name: "self / workflow_get" }).first().click();
  const trace = page.getByRole("region", { name: "Hook graph watch" });
  await trace.getByText("Note the id").waitFor();
  expect(await trace.getByLabel("Console of Note the id").textContent()).toContain("asked for");
  expect(await trace.textContent()).toContain("/request/params/arguments/mode");
  await page.getByText("The bodies of this request are not recorded.").waitFor();
  await accessible(page);
  await page.goto("/requests/q_none");
  await page.getByText("There is no such request").waitFor();
  expect(complaints.filter((c) => !c.includes("404"))).toEqual([]);
});

test("a long record is drawn in part, and narrow windows have it too", async () => {
  const { page } = person;
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let i = 0; i < 40; i++) await client.answer("self__workflow_list", {});
  }));
  await page.goto("/requests?q=workflow_list");
  await page.getByRole("table", { name: "Requests" }).waitFor();
  await expect.poll(() => count(page, "q=workflow_list&limit=500")).toBeGreaterThan(300);
  await page.reload();
  await page.getByRole("table", { name: "Requests" }).waitFor();
  expect(await page.locator(".requests tbody tr:not(.table-space)").count()).toBeLessThan(120);
  await accessible(page);
});
