import { readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
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

const node = (page: Page, id: string): Locator => page.locator(`.react-flow__node[data-id="${id}"]`);
const way = (page: Page, name: string): Locator => page.locator(`.react-flow__edge[aria-label="${name}"]`);
const refused = (page: Page) => page.locator(".refused");

/** Draws from the lower end of a node to the upper end of another one. */
async function draw(page: Page, from: string, to: string, handle = "") {
  const start = await node(page, from).locator(`.react-flow__handle.source${handle}`).boundingBox();
  const box = await node(page, to).boundingBox();
  if (start === null || box === null) throw new Error("a node is not to be seen");
  await page.mouse.move(start.x + start.width / 2, start.y + start.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y - 30, { steps: 8 });
  await page.mouse.move(box.x + box.width / 2, box.y + 2, { steps: 4 });
  await page.mouse.up();
}

/** Replaces what a script editor has. */
async function script(page: Page, name: string, text: string) {
  await page.getByRole("textbox", { name }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

/** The text of what a tool of the upstream answers. */
async function called(name: string, args: Record<string, unknown>): Promise<string> {
  return (await client.answer(name, args)).content.map((c) => c.text).join("\n");
}

test("a graph is drawn, saved and enabled, and wraps a call", async () => {
  const { page, complaints } = person;
  complaints.length = 0;
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto("/hooks");
  await page.getByRole("link", { name: "New graph" }).click();
  await node(page, "call").waitFor();

  // A hook is dropped onto the way before the call, another one onto free space,
  // and is drawn into the way behind it.
  await page.getByRole("button", { name: "Hook", exact: true }).dragTo(way(page, "Edge from Start to MCP call"), { force: true });
  await node(page, "hook").waitFor();
  expect(await way(page, "Edge from Start to Hook").count()).toBe(1);
  await page.getByRole("button", { name: "Arrange" }).click();
  await page.locator(".react-flow__controls-fitview").click();
  await page.getByRole("button", { name: "Hook", exact: true }).dragTo(page.locator(".canvas"), { targetPosition: { x: 90, y: 420 } });
  await node(page, "hook-2").waitFor();
  await page.getByText("No path leads to node 'hook-2'").waitFor();

  // What would break a rule cannot be drawn, and says why.
  await draw(page, "call", "hook-2");
  await expect.poll(() => refused(page).textContent()).toContain("MCP call has an outgoing edge already");
  expect(await way(page, "Edge from MCP call to Hook").count()).toBe(0);
  await draw(page, "hook-2", "end");
  await expect.poll(() => refused(page).textContent()).toContain("End has an incoming edge already");

  await page.getByRole("tab", { name: "List" }).click();
  await page.getByRole("button", { name: "Remove the edge from MCP call to End" }).click();
  await draw(page, "call", "hook-2");
  await draw(page, "hook-2", "end");
  await way(page, "Edge from MCP call to Hook").waitFor({ state: "attached" });
  await way(page, "Edge from Hook to End").waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Arrange" }).click();

  await node(page, "hook").click();
  await page.getByLabel("Label").fill("Before");
  await script(page, "Script of Before", "context.request.params.arguments.output += ' seen before';\nif (");
  await page.locator('.react-flow__node[data-id="hook"] .piece-found').waitFor(); // the finding stands at its node
  await script(page, "Script of Before", "context.request.params.arguments.output += ' seen before';");
  await node(page, "hook-2").click();
  await page.getByLabel("Label").fill("Behind");
  await script(page, "Script of Behind", "console.log('behind');\nfor (const part of context.response.content ?? []) part.text += ' [seen behind]';");

  await page.getByRole("tab", { name: "Graph" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Both sides");
  await page.getByLabel("Id", { exact: true }).fill("both-sides");
  await page.getByRole("button", { name: "Add a binding" }).click();
  await page.getByLabel("Server of binding 1").fill("self");
  await page.getByLabel("Tool of binding 1").fill("workflow_validate");

  // Tried without any server.
  await page.getByRole("tab", { name: "Test" }).click();
  await page.getByLabel("Request: the params").fill('{"name": "workflow_validate", "arguments": {"output": "x"}}');
  await page.getByRole("button", { name: "Test the graph" }).click();
  const trial = page.getByRole("region", { name: "Result" });
  await trial.getByText("It passed, changed by a hook.").waitFor();
  expect(await trial.textContent()).toContain("x seen before");
  expect(await trial.textContent()).toContain("Hello [seen behind]");
  await expect.poll(() => node(page, "hook").textContent()).toMatch(/\d ms/);

  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("button", { name: "Save to user" }).click();
  await page.waitForURL("**/hooks/both-sides*");
  const args = { workflowId: "coding-task", stepId: "no-such-step", output: "mine" };
  expect(await called("self__workflow_validate", args)).not.toContain("seen behind");

  await page.getByRole("button", { name: "Enable…" }).click();
  await page.getByRole("button", { name: "Enable it" }).click();
  await page.locator('.hook-state[data-state="active"]').waitFor();
  expect(await called("self__workflow_validate", args)).toContain("[seen behind]");
  // What the call took stands at each node, by the record of requests.
  await expect.poll(async () => { await page.reload(); await node(page, "hook-2").waitFor(); return node(page, "hook-2").textContent(); }, { timeout: 15_000, interval: 1_000 }).toMatch(/ms, p99/);
  // And so does the trace, at the request.
  await page.goto("/requests?hook=both-sides");
  await page.getByRole("row").filter({ hasText: "workflow_validate" }).getByRole("link").first().click();
  await page.getByRole("heading", { name: /Hook graph both-sides/ }).waitFor();
  // Chromium itself wants to keep the style of text that is typed over; the policy stops it, and the editor does not need it.
  expect(complaints.filter((c) => !c.includes("/stats") && !c.startsWith("Applying inline style"))).toEqual([]);
});

test("enabled graphs are drawn as chains in their order, and a request has the trace of each", async () => {
  const { page } = person;
  const graphs = async (method: string) => page.getByRole("list", { name: `Chain of ${method}` }).getByRole("listitem").evaluateAll((items) => items.map((item) => item.textContent?.trim()));
  const enable = async (id: string, order?: string) => {
    await page.goto(`/hooks/${id}`);
    await page.getByRole("button", { name: "Enable…" }).click();
    if (order !== undefined) await page.getByRole("dialog").getByLabel(/^Order in the chain/).fill(order);
    await page.getByRole("button", { name: "Enable it" }).click();
    await page.locator('.hook-state[data-state="active"]').waitFor();
  };
  await enable("redact-secrets");
  await enable("cap-result-size", "95");
  await page.goto("/hooks");
  await page.getByRole("heading", { name: /^Chains/ }).waitFor();
  expect(await graphs("tools/call")).toEqual(["tools/call client", "redact-secrets 30", "both-sides 50", "cap-result-size 95", "upstream"]);
  expect(await graphs("prompts/get")).toEqual(["prompts/get client", "redact-secrets 30", "upstream"]);
  await accessible(page, "/hooks with chains");

  const args = { workflowId: "coding-task", stepId: "no-such-step", output: "chained" };
  expect(await called("self__workflow_validate", args)).toContain("[seen behind]");
  const request = page.getByRole("row").filter({ hasText: "workflow_validate" }).getByRole("link").first();
  const traced = async () => { await page.goto("/requests?hook=cap-result-size"); return request.waitFor({ timeout: 1_500 }).then(() => true, () => false); };
  await expect.poll(traced, { timeout: 15_000 }).toBe(true);
  await request.click();
  const traces = page.getByRole("region", { name: /^Hook graph / });
  await expect.poll(() => traces.count()).toBe(3);
  expect(await traces.evaluateAll((list) => list.map((trace) => trace.getAttribute("aria-label")))).toEqual(["Hook graph redact-secrets", "Hook graph both-sides", "Hook graph cap-result-size"]);
  expect(await traces.nth(1).textContent()).toContain("behind");
  expect(await traces.nth(2).textContent()).not.toContain("behind");

  for (const id of ["redact-secrets", "cap-result-size"]) {
    await page.goto(`/hooks/${id}`);
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("button", { name: "Disable it" }).click();
    await page.locator('.hook-state[data-state="off"]').waitFor();
  }
});

test("an edit is undone and done again, a version restored, and the graph disabled", async () => {
  const { page } = person;
  await page.goto("/hooks/both-sides");
  await node(page, "hook-2").click();
  await page.keyboard.press("Delete");
  await node(page, "hook-2").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await node(page, "hook-2").waitFor();
  await page.getByRole("button", { name: "Redo" }).click();
  await node(page, "hook-2").waitFor({ state: "detached" });
  await page.locator(".canvas").getByRole("button", { name: "zoom in" }).focus();
  await page.keyboard.press("ControlOrMeta+z");
  await node(page, "hook-2").waitFor();
  await page.getByRole("tab", { name: "Graph" }).click();
  await page.getByLabel("Description").fill("It has a second version.");
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("button", { name: "Save to user" }).click();
  await page.getByText("Saved to user.").waitFor();
  await page.locator('.hook-state[data-state="active"]').waitFor();
  await page.getByRole("tab", { name: "Versions" }).click();
  const versions = page.getByRole("list", { name: "Versions" }).getByRole("listitem");
  await expect.poll(() => versions.count()).toBe(2);
  await versions.nth(1).getByRole("button").click();
  await page.locator(".difference").waitFor();
  await page.getByRole("button", { name: "Restore this version…" }).click();
  await page.getByRole("button", { name: "Restore it" }).click();
  await page.getByText("The version is restored.").waitFor();
  await page.getByRole("tab", { name: "Graph" }).click();
  expect(await page.getByLabel("Description").inputValue()).toBe("");
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Disable it" }).click();
  await page.locator('.hook-state[data-state="off"]').waitFor();
  expect(await called("self__workflow_validate", { workflowId: "coding-task", stepId: "no-such-step", output: "mine" })).not.toContain("seen behind");
});

test("somebody else's change is shown, and never overwritten", async () => {
  const { page } = person;
  await page.goto("/hooks/both-sides");
  await page.getByRole("tab", { name: "Graph" }).click();
  await page.getByLabel("Description").fill("Mine.");
  const file = server.file("config/guideway/workflows/hooks/both-sides.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"Both sides"', '"Theirs"'));
  await page.getByText("Checking…").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("button", { name: "Save to user" }).click();
  await page.getByRole("button", { name: "Show the current version" }).click();
  await page.getByText("This graph has changed").waitFor();
  expect(readFileSync(file, "utf8")).toContain("Theirs");
  await page.getByRole("button", { name: "Use the saved version" }).click();
  await page.getByRole("heading", { name: "Theirs" }).waitFor();
});

test("what came with a project shows its scripts before it is approved, and again after a change", async () => {
  const { page } = person;
  const file = join(server.project, "workflows/hooks/theirs.yaml");
  mkdirSync(join(server.project, "workflows/hooks"), { recursive: true });
  writeFileSync(file, `id: theirs
name: Of the project
workflowType: tools/call
bindings: [{ upstream: none }]
nodes:
  - { id: start, type: start }
  - { id: h, type: hook, data: { hook: { script: "context.variables.spy = 1;" } } }
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`);
  await expect.poll(async () => { await page.goto("/hooks"); return page.getByRole("link", { name: "Of the project" }).waitFor({ timeout: 1_500 }).then(() => true, () => false); }, { timeout: 15_000 }).toBe(true);
  await page.getByRole("link", { name: "Of the project" }).click();
  await page.getByRole("button", { name: "Enable…" }).click();
  expect(await page.getByRole("dialog").textContent()).toContain("context.variables.spy = 1;");
  await page.getByRole("button", { name: "Approve this version" }).click();
  await page.locator('.hook-state[data-state="active"]').waitFor();
  await node(page, "h").click();
  await script(page, "Script of h", "context.variables.spy = 2;");
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("button", { name: "Save to project" }).click();
  await page.locator('.hook-state[data-state="changed"]').waitFor();
  await page.getByText("changed since its approval").waitFor();
  expect(readFileSync(file, "utf8")).toContain("bindings: [{upstream: none}]");
  await page.getByRole("button", { name: "Enable again…" }).click();
  await page.getByRole("button", { name: "Approve this version" }).click();
  await page.locator('.hook-state[data-state="active"]').waitFor();
});

test("a graph is made by keys alone", async () => {
  const { page } = person;
  await page.goto("/new-hook");
  await node(page, "call").waitFor();
  await node(page, "start").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Start: Start" }).waitFor();
  await page.getByRole("tab", { name: "List" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the edge from Start to MCP call" }).press("Enter");
  await page.getByRole("button", { name: "Condition", exact: true }).press("Enter");
  await page.getByRole("heading", { name: "Condition: Condition" }).waitFor();
  const options = page.getByLabel("Connect to, if true").locator("option");
  expect(await options.filter({ hasText: "Start — " }).isDisabled()).toBe(true);
  await page.getByLabel("Connect to, if true").selectOption({ label: "MCP call" });
  await way(page, "Edge from Condition if true to MCP call").waitFor({ state: "attached" });
  const before = await node(page, "condition").boundingBox();
  await node(page, "condition").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const after = await node(page, "condition").boundingBox();
  expect((after?.x ?? 0) - (before?.x ?? 0)).toBeGreaterThan(2);
  await page.keyboard.press("Delete");
  await node(page, "condition").waitFor({ state: "detached" });
});

test("a template is copied, and a graph imported", async () => {
  const { page } = person;
  await page.goto("/hooks");
  await page.getByRole("link", { name: "Copy default-argument" }).click();
  await page.getByRole("heading", { name: /^My / }).waitFor();
  await page.getByRole("tab", { name: "Graph" }).click();
  expect(await page.getByLabel("Template: copied, never enabled").isChecked()).toBe(false);
  await page.goto("/hooks");
  await page.getByRole("button", { name: "Import…" }).click();
  await page.getByLabel("Text").fill('{"id":"x"}');
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByRole("dialog").locator('[data-severity="error"]').first().waitFor();
  await page.getByLabel("Text").fill(readFileSync(server.file("config/guideway/workflows/hooks/both-sides.json"), "utf8").replace('"both-sides"', '"brought"'));
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await node(page, "hook-2").waitFor();
});

test.each(["/hooks", "/hooks/both-sides", "/hooks/both-sides?tab=graph", "/hooks/both-sides?tab=list", "/hooks/both-sides?tab=test", "/hooks/both-sides?tab=versions", "/hooks/redact-secrets", "/hooks/none"])("axe finds nothing at %s", async (path) => {
  const { page } = person;
  await page.goto(path);
  await page.waitForFunction(() => document.querySelector("h1, h3") !== null && document.querySelector(".skeleton") === null);
  await accessible(page, path);
});
