import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, login, type Person } from "./browser";
import { release } from "./fixtures";
import { begin, next, seed, type Seeded } from "./seed";
import { Server } from "./server";

let server: Server;
let browser: Browser;
let person: Person;
let data: Seeded;

beforeAll(async () => {
  server = await Server.start([release]);
  browser = await launch();
  data = await seed(server);
  person = await login(browser, server);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test("a run that an agent starts comes by itself, and moves", async () => {
  const { page } = person;
  await page.goto("/runs");
  await page.getByRole("table", { name: "Runs" }).waitFor();
  const id = await begin(data.client, "Release 5.0 while somebody looks");
  await page.getByRole("link", { name: "Release 5.0 while somebody looks" }).click();
  await page.getByRole("heading", { name: "Plan the release" }).waitFor();
  const node = page.locator('.react-flow__node[data-id="plan"]');
  expect(await node.getAttribute("aria-label")).toContain("the run is here");
  await next(data.client, id, { output: "The next version is 5.0.0.", context: { breaking: false } });
  await page.getByText("Waiting for you").waitFor();
  expect(await page.locator(".handed-in").textContent()).toContain("The next version is 5.0.0.");
});

test("an agent cannot open a person's gate, and a person does in place", async () => {
  const { page } = person;
  await expect(next(data.client, data.waiting, { answer: { optionId: "confirm" } })).rejects.toThrow("gate-needs-person");
  await page.goto("/");
  const card = page.getByRole("article", { name: "Release 4.1: faster start" });
  await card.getByRole("radio", { name: /Confirm/ }).check();
  await card.getByLabel("Note (optional)").fill("Looks right.");
  await card.getByRole("button", { name: "Confirm: Release 4.1: faster start" }).click();
  await card.getByText("You answered this gate.").waitFor();
  await page.goto(`/runs/${data.waiting}`);
  await page.getByRole("heading", { name: "Write the notes" }).waitFor();
  await page.getByText("Gate answered").click();
  expect(await page.locator(".event-more").first().textContent()).toContain("By a person in a browser");
});

test("a run is forked at an event, and aborted with a reason", async () => {
  const { page } = person;
  await page.goto(`/runs/${data.completed}`);
  await page.getByText("Gate answered").last().click();
  await page.getByRole("button", { name: "Fork from here" }).click();
  await page.getByText("forked from").waitFor();
  await page.getByRole("button", { name: "Abort", exact: true }).click();
  await page.getByLabel("Reason (optional)").fill("Only a trial.");
  await page.getByRole("button", { name: "Abort the run" }).click();
  await page.getByText("The run is aborted.").waitFor();
});

test("a session is deleted and brought back", async () => {
  const { page } = person;
  await page.goto("/sessions");
  const card = page.getByRole("link", { name: "Find the flaky test" });
  await page.getByLabel("Select Find the flaky test").check();
  await page.getByRole("button", { name: "Delete" }).click();
  await card.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await card.waitFor();
});

test("markup in a document is text", async () => {
  const { page } = person;
  page.once("dialog", () => { throw new Error("a script of the document ran"); });
  await page.goto(`/dashboard/${data.session.id}?workflow=${data.session.workflow}`);
  await page.getByText("<script>alert(1)</script> is a row, and reads as text").waitFor();
  await page.getByText("Rows with a <b>comma</b> in quotes are cut").waitFor();
  expect(await page.locator("main script, main b").count()).toBe(0);
});

test("an error is marked at its line, and nothing that has one is saved", async () => {
  const { page } = person;
  await page.goto("/workflows/release/edit");
  const editor = page.getByRole("textbox", { name: "Definition" });
  await page.getByText("No diagnostics").waitFor();
  await editor.focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.insertText("  - id: last\n");
  await page.getByText("1 error to fix").or(page.getByText(/errors to fix/)).waitFor();
  expect(await page.locator(".cm-lint-marker-error").count()).toBeGreaterThan(0);
  expect(await page.getByRole("button", { name: "Save…" }).isDisabled()).toBe(true);
  await page.keyboard.insertText("    title: Tell everybody\n    prompt: Tell everybody that it is out.\n");
  await page.getByRole("button", { name: "Save…" }).click();
  const dialog = page.getByRole("dialog", { name: "Save release" });
  expect(await dialog.locator(".cm-changedLine").first().textContent()).toContain("last");
  await dialog.getByRole("button", { name: "Save to project" }).click();
  await page.getByText("Saved to project.").waitFor();
  expect(readFileSync(join(server.project, "workflows/release.yaml"), "utf8")).toContain("Tell everybody that it is out.");
  await page.locator('.react-flow__node[data-id="last"]').waitFor({ state: "attached" });
});

test("two who change one workflow are shown the conflict", async () => {
  const { page } = person;
  const other = await person.context.newPage();
  for (const [p, words] of [[page, "One"], [other, "Other"]] as const) {
    await p.goto("/workflows/release/edit");
    await p.getByText("No diagnostics").waitFor();
    await p.getByRole("textbox", { name: "Definition" }).focus();
    await p.keyboard.press("Control+Home");
    await p.keyboard.insertText(`# ${words}\n`);
    await p.getByRole("button", { name: "Save…" }).click();
  }
  await page.getByRole("button", { name: "Save to project" }).click();
  await page.getByText("Saved to project.").waitFor();
  await other.getByRole("button", { name: "Save to project" }).click();
  await other.getByText("was changed after you read it").waitFor();
  await other.getByRole("button", { name: "Show the current version" }).click();
  await other.getByRole("heading", { name: "This workflow has changed" }).waitFor();
  await other.close();
  expect(readFileSync(join(server.project, "workflows/release.yaml"), "utf8")).not.toContain("# Other");
});

test("what somebody else saves comes by itself, into an editor without changes too", async () => {
  const { page } = person;
  const other = await person.context.newPage();
  await page.goto("/workflows/release");
  await other.goto("/workflows/release/edit");
  await other.getByText("No diagnostics").waitFor();
  const file = join(server.project, "workflows/release.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replace("name: Release a version", "name: Release it"));
  await page.getByRole("heading", { name: "Release it", level: 1 }).waitFor();
  await other.getByText("A new version was saved.").waitFor();
  await other.getByRole("heading", { name: "Edit Release it" }).waitFor();
  expect(await other.getByRole("textbox", { name: "Definition" }).textContent()).toContain("name: Release it");
  expect(await other.getByRole("button", { name: "Save…" }).isDisabled()).toBe(true);
  await other.close();
});

test("a browser with the cookie alone is told that it is not logged in, and reads nothing", async () => {
  const { cookies } = await person.context.storageState(); // the cookie without the key: as at another address of the same server
  const context = await browser.newContext({ baseURL: server.url, storageState: { cookies, origins: [] } });
  const other = await context.newPage();
  for (const path of [`/runs/${data.working}`, "/workflows/release"]) {
    await other.goto(path);
    await other.getByText("This browser is not logged in at this address.").first().waitFor();
    expect(await other.getByRole("button", { name: /^(Abort|Fork|Start a run)$/, disabled: false }).count()).toBe(0);
    expect(await other.getByRole("heading", { name: "Release" }).count()).toBe(0);
  }
  await context.close();
});

test("a run is handed to another agent", async () => {
  const { page } = person;
  await page.goto(`/runs/${data.working}`);
  await page.getByRole("button", { name: "Resume…" }).press("Enter");
  await page.getByRole("dialog").getByText(`workflow_resume with {"runId": "${data.working}"}`).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
});

test("a workflow is tried: a refusal says why, and a move is undone", async () => {
  const { page } = person;
  await page.goto("/workflows/release/try");
  await page.getByLabel("Output").fill("Nothing much.");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByText("name the version").last().waitFor();
  expect(await page.getByRole("alert").textContent()).toContain("Refused");
  await page.getByLabel("Output").fill("The version is 6.");
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("button", { name: "Confirm" }).click();
  await page.getByRole("heading", { name: "Write the notes" }).waitFor();
  await page.getByRole("button", { name: "Undo the last move" }).click();
  await page.getByRole("button", { name: "Confirm" }).waitFor();
});

test("the editor completes by the schema", async () => {
  const { page } = person;
  await page.goto("/new-workflow");
  await page.getByText("No diagnostics").waitFor();
  await page.getByRole("textbox", { name: "Definition" }).focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("    val");
  await page.locator(".cm-tooltip-autocomplete").getByText("validationCriteria").waitFor();
});

test("a graph is travelled by keys, and the chosen node narrows the events", async () => {
  const { page } = person;
  await page.goto(`/runs/${data.working}`);
  await page.getByLabel("Find a step").fill("Write the notes");
  await page.keyboard.press("Enter");
  await page.locator('.react-flow__node[data-id="notes"]:focus').waitFor();
  await page.keyboard.press("ArrowDown");
  await page.locator('.react-flow__node[data-id="migrate"]:focus').waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("Events of Write a guide for the migration").waitFor();
  expect(await page.locator(".event").count()).toBe(1);
});
