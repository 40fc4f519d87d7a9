import { expect, test } from "vitest";
import { release, twoPersons } from "./fixtures";
import { approve, begin, next } from "./seed";
import { setUp } from "./setup";

const setup = setUp([release, twoPersons]);

/** Starts a run and hands in its plan, which a person has to approve. */
async function wait(goal: string, output = "The next version is 4.0.0."): Promise<string> {
  const id = await begin(setup.client, goal);
  await next(setup.client, id, { output, context: { breaking: false } });
  return id;
}

test("gates hold still while others come, and the button names the run", async () => {
  const { page } = setup.person;
  await wait("First");
  await wait("Second");
  await page.goto("/");
  const first = page.getByRole("article", { name: "First" });
  await first.getByRole("radio", { name: /Confirm/ }).check();
  const button = first.getByRole("button", { name: "Confirm: First" });
  const before = await button.boundingBox();
  await wait("Third");
  await wait("Fourth");
  await page.getByText("2 more wait").waitFor();
  expect(await button.boundingBox()).toEqual(before);
  const cards = () => page.locator("article.waiting").evaluateAll((all) => all.map((a) => a.getAttribute("aria-label")));
  expect(await cards()).toEqual(["First", "Second"]);

  await button.click();
  await first.getByText("You answered this gate.").waitFor();
  await page.getByText("2 more wait · 1 answered").waitFor();
  expect(await cards()).toEqual(["First", "Second"]);
  await page.getByRole("button", { name: "Update the list" }).click();
  await page.getByRole("article", { name: "Fourth" }).waitFor();
  expect(await cards()).toEqual(["Second", "Third", "Fourth"]);
});

test("a form that has just come accepts no click", async () => {
  const { page } = setup.person;
  await page.goto("/runs");
  await page.getByRole("link", { name: "Overview" }).click();
  const choice = page.getByRole("article", { name: "Second" }).getByRole("radio", { name: /Confirm/ });
  await choice.waitFor();
  expect(await choice.isDisabled()).toBe(true);
  await page.waitForFunction(() => document.querySelector("article.waiting fieldset:disabled") === null, undefined, { timeout: 3_000 });
});

test("a note survives new gates and the answer of another person", async () => {
  const { page } = setup.person;
  const id = await wait("Noted");
  for (const path of ["/", `/runs/${id}`]) {
    if (path !== "/") await next(setup.client, id, { output: "The next version is 4.0.1." }); // the gate again
    await page.goto(path);
    const form = path === "/" ? page.getByRole("article", { name: "Noted" }) : page.locator(".run-now");
    await form.getByLabel("Note (optional)").fill("I have doubts about the flag");
    for (const n of [1, 2, 3]) await wait(`More ${n} on ${path}`);
    await approve(setup.server, id, "revise");
    await form.getByText("Answered by a person in a browser: Revise. Your draft was not sent.").waitFor();
    expect(await form.getByLabel("Note (optional)").inputValue()).toBe("I have doubts about the flag");
    expect(await form.getByRole("button", { name: /Noted/ }).count()).toBe(0);
  }
  await page.locator(".run-now").getByRole("button", { name: "Close" }).click();
  await page.getByText("The agent works on").waitFor();
  expect(await page.getByLabel("Note (optional)").count()).toBe(0);
});

test("the whole output is shown before it can be approved, with its hidden characters", async () => {
  const { page } = setup.person;
  const lines = Array.from({ length: 60 }, (_, i) => `Line ${i + 1} of the version.`);
  const id = await wait("Long\u202Edlrow", [...lines, "See \u202Eelpmaxe.live\u200B", "rm -rf the production database"].join("\n"));
  await page.goto(`/runs/${id}`);
  await page.getByRole("heading", { name: "Long\\u{202E}dlrow" }).waitFor();
  const gate = page.locator(".run-now");
  await gate.getByRole("radio", { name: /Confirm/ }).check();
  const send = gate.getByRole("button", { name: /^Confirm: Long/ });
  expect(await send.isDisabled()).toBe(true);
  await gate.getByText("Show the whole output before you answer.").waitFor();
  await gate.getByRole("button", { name: "Show 38 more lines" }).click();
  expect(await gate.locator(".handed-in pre").textContent()).toContain("See \\u{202E}elpmaxe.live\\u{200B}\nrm -rf the production database");
  expect(await gate.locator(".handed-in pre").evaluate((e) => e.scrollHeight - e.clientHeight)).toBe(0);
  await send.click();
  await page.getByText("You answered this gate.").waitFor();
  expect(setup.person.complaints).toEqual([]);
});

test("a refused output is kept with the criteria that it failed", async () => {
  const { page } = setup.person;
  const id = await begin(setup.client, "Refused");
  await expect(next(setup.client, id, { output: "Looks good to me." })).rejects.toThrow("name the version");
  await page.goto(`/runs/${id}`);
  await page.getByText("Command refused").click();
  const event = page.locator(".event-more").first();
  expect(await event.locator("pre").textContent()).toContain("Looks good to me.");
  expect(await event.getByRole("listitem").filter({ hasText: "name the version" }).count()).toBe(1);
  await page.getByRole("tab", { name: /Outputs/ }).click();
  const output = page.locator(".output").first();
  await output.getByText("refused").waitFor();
  await output.getByText("Looks good to me.").waitFor();
});

test("a gate that needs two persons names them, and takes one answer of each", async () => {
  const { page } = setup.person;
  const started = await setup.client.call("workflow_start", { workflowId: "two-persons", goal: "Shared decision" });
  const id = String(started["runId"]);
  await next(setup.client, id, { output: "The plan." });
  await page.goto(`/runs/${id}`);
  const gate = page.locator(".run-now");
  await gate.getByText("Needs the same answer from 2 persons with the role approver or admin").waitFor();
  await gate.getByRole("radio", { name: /Confirm/ }).check();
  await gate.getByRole("button", { name: "Confirm: Shared decision" }).click();
  await gate.getByRole("list", { name: "Answers so far" }).getByText("(you): Confirm").waitFor();
  await gate.getByText("You gave the answer Confirm. Another person must give the same.").waitFor();
  expect(await gate.getByRole("button", { name: "Confirm: Shared decision" }).isDisabled()).toBe(true);
});
