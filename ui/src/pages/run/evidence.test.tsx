// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act, type ReactNode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Schemas } from "../../api/client";
import { Checks } from "./Checks";
import { HandedIn } from "./HandedIn";
import { LabelBadge } from "./LabelBadge";
import { Output } from "./Outputs";
import { ProvedCount } from "./Proved";
import { RunPrompt } from "./RunPrompt";
import { EventRow } from "./Timeline";

let root: Root;
let page: HTMLElement;
const showPopover = vi.fn();
const hidePopover = vi.fn();

beforeEach(() => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  Object.assign(HTMLElement.prototype, { showPopover, hidePopover }); // jsdom has no popovers
  page = document.body.appendChild(document.createElement("main"));
  root = createRoot(page);
});

afterEach(() => {
  act(() => root.unmount());
  page.remove();
  vi.clearAllMocks();
});

function render(what: ReactNode) {
  act(() => root.render(<QueryClientProvider client={new QueryClient()}>{what}</QueryClientProvider>));
}

const one = (selector: string) => page.querySelector<HTMLElement>(selector) ?? expect.fail(`no ${selector} in ${page.innerHTML}`);
const texts = (selector: string) => [...page.querySelectorAll(selector)].map((e) => e.textContent);
const facts = () => Object.fromEntries([...page.querySelectorAll(".check-facts > div")].map((e) => [e.querySelector("dt")?.textContent, e.querySelector("dd")?.textContent]));

const passed: Schemas["CheckResult"] = {
  step: "build", key: "/1", type: "check", name: "test", describe: "the check test of the project passes", passed: true, argv: ["go", "test", "./..."], dir: "/home/ann/shop/api", exitCode: 0, durationMs: 1234,
  outputBytes: 20_000, head: "=== RUN TestA", tail: "ok  api 1.2s", instance: "desk-1", sandboxed: true,
  workspace: { root: "/home/ann/shop", host: "desk", commit: "c0ffee", dirty: ["api/a.go", "api/b.go"], dirtyCount: 120 },
};
const failed: Schemas["CheckResult"] = { ...passed, key: "/2", passed: false, exitCode: 1, issue: "the tests fail", head: "FAIL TestA", tail: "" };
const event = (kind: string, data: object, more: object = {}) => ({ seq: 7, at: "2026-05-14T09:12:00Z", kind, data, by: { via: "agent" }, ...more }) as Schemas["Event"];
const completed = (label: string, by = "agent") => event("step_completed", { step: "build", output: "It is built." }, { label, by: { via: by } });

test("a keyboard and a screen reader reach the explanation of a label", () => {
  render(<LabelBadge label="claim" checks={[]} />);
  const badge = one("button");
  expect(badge.textContent).toBe("◇ Claim");
  expect(document.getElementById(badge.getAttribute("aria-describedby") ?? "")?.textContent).toContain("Only the agent reports");
  act(() => badge.focus());
  expect(showPopover).toHaveBeenCalledOnce();
  expect(showPopover.mock.contexts[0]).toBe(one("[role=tooltip]"));
  hidePopover.mockClear();
  act(() => void badge.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true })));
  expect(hidePopover).toHaveBeenCalledOnce();
});

test("a pointer over a label shows its explanation", () => {
  render(<LabelBadge label="evidence" checks={[passed]} />);
  expect(one("button").textContent).toBe("◆ Evidence");
  act(() => void one("button").dispatchEvent(new MouseEvent("pointerover", { bubbles: true })));
  expect(showPopover).toHaveBeenCalledOnce();
});

test("a completed step has its label and its checks", () => {
  render(<Output event={completed("evidence")} titles={new Map([["build", "Build it"]])} checks={[passed]} />);
  expect(texts(".output-head h3, .output-head button")).toEqual(["Build it", "◆ Evidence"]);
  expect(texts(".check-result > summary")).toEqual(["✓ passed · the check test of the project passesexit code 0 · 1.2 s"]);
});

test("a check has its command, its workspace and its folded output", () => {
  render(<Checks list={[passed]} />);
  expect(facts()).toMatchObject({
    Command: "go test ./...", "Exit code": "0", Duration: "1.2 s", Directory: "/home/ann/shop/api on desk", Commit: "c0ffee", Server: "desk-1", Execution: "in a sandbox",
  });
  expect(facts()["Changed files"]).toBe("120 files differ from the commitapi/a.goapi/b.goand 118 more");
  expect([...page.querySelectorAll("details")].map((d) => d.open)).toEqual([false, false, false]);
  expect(texts(".check-more > details summary")).toEqual(["Output, 20.0 kB"]);
  expect(texts(".check-more > details pre, .check-more > details p")).toEqual(["=== RUN TestA", "… the middle of the output is not kept …", "ok  api 1.2s"]);
});

test("a refused attempt has its failed checks", () => {
  const refused = event("command_refused", { step: "build", output: "All tests pass.", issues: ["the tests fail"] });
  render(<Output event={refused} titles={new Map()} checks={[passed, failed]} />);
  expect(texts(".check-result .status")).toEqual(["✓ passed", "✕ failed"]);
  expect(texts(".check-issue")).toEqual(["the tests fail"]);
  expect(page.querySelector(".label-badge")).toBeNull();
  render(<EventRow runId="r_1" event={refused} titles={new Map()} checks={[failed]} />);
  expect(texts(".check-issue")).toEqual(["the tests fail"]);
});

test("an attempt that waits for a check has the reason", () => {
  render(<Output event={event("command_refused", { step: "build", rule: "check-waits", output: "Built.", message: "the step waits for a check: nobody has approved it" })} titles={new Map()} checks={[]} />);
  expect(texts(".output > p")).toEqual(["the step waits for a check: nobody has approved it"]);
});

test("a check that did not end has no exit code, and one that is not defined was not executed", () => {
  const { exitCode: _, ...killed } = { ...failed, inconclusive: true, killed: 2 };
  render(<Checks list={[killed, { describe: "the check lint of the project passes", passed: false, undefined: true, durationMs: 0 }]} />);
  expect(texts(".check-result .status")).toEqual(["✕ not finished", "⤳ not defined"]);
  expect(facts()["Exit code"]).toBe("none: the command did not end by itself");
  expect(facts()["Execution"]).toContain("2 processes outlived the command");
  expect(one(".checks > ul > li:last-child").textContent).toContain("it was not executed");
});

test("results of an imported bundle are not shown as those of this server", () => {
  render(<Output event={completed("claim", "import")} titles={new Map()} checks={[passed]} />);
  expect(texts(".checks > h3")).toEqual(["Checks, according to the bundle"]);
  expect(one("[role=tooltip]").textContent).toContain("imported bundle");
});

test("the events have the labels of steps and the results of checks", () => {
  render(<EventRow runId="r_1" event={completed("evidence")} titles={new Map()} checks={[passed]} />);
  expect(one("summary .label-badge").textContent).toBe("◆ Evidence");
  expect(page.querySelector("summary button")).toBeNull(); // a summary is a control itself
  expect(texts(".event-more .checks > h3")).toEqual(["Checks by Guideway"]);
  render(<EventRow runId="r_1" event={event("check_run", failed)} titles={new Map([["build", "Build it"]])} checks={[]} />);
  expect(one(".event-what").textContent).toBe("Check failed");
  expect(one(".event-about").textContent).toBe("Build it · the check test of the project passes");
  expect(one(".check-result").hasAttribute("open")).toBe(true);
});

test("a gate shows the label and the checks above the output", () => {
  const submission: Schemas["Submission"] = { seq: 7, step: "build", output: "It is built.", label: "evidence", checks: [{ check: "the check test of the project passes", passed: false, exitCode: 1, durationMs: 40, output: "FAIL TestA" }] };
  render(<HandedIn submission={submission} isOpen onOpen={() => undefined} />);
  expect(texts(".label-badge, .check-words, h3, .check-more pre, .handed-in > pre")).toEqual(["◆ Evidence", "Checks by Guideway", "the check test of the project passes", "FAIL TestA", "Output", "It is built."]);
});

test("a position tells what Guideway checks from what the agent claims", () => {
  render(<RunPrompt position={{ kind: "step", prompt: "Build it.", criteria: ["contains \"BUILT\"", "the check test of the project passes", "Describe in notes: the risks"], checkedCriteria: [1] }} open />);
  expect(one("summary").textContent).toBe("Prompt and 3 criteria, 1 checked by Guideway");
  expect(texts("h3, li")).toEqual(["Guideway checks for itself", "the check test of the project passes", "The agent claims", "contains \"BUILT\"", "Describe in notes: the risks"]);
});

test("a run counts its proved steps", () => {
  render(<ProvedCount count={{ proved: 3, done: 5 }} done={5} />);
  expect(one("button").textContent).toBe("3 of 5 steps proved");
  expect(one("[role=tooltip]").textContent).toContain("2 steps are claims of the agent.");
  render(<ProvedCount count={undefined} done={5} />);
  expect(page.textContent).toBe("5 steps done");
});
