import type { Schemas } from "../../api/client";
import { isObject } from "../../graph/json";

export type CheckResult = Schemas["CheckResult"];
export type StepLabel = Schemas["StepLabel"];

/** A check as it is shown: the answer at a gate has less of it than its event. */
export type ShownCheck = Pick<CheckResult, "describe" | "passed" | "durationMs"> & Partial<CheckResult>;

type Kind = "string" | "number" | "boolean" | "texts" | "values" | "workspace";
type Shape<T> = Record<keyof T, Kind>;

const checkShape: Shape<CheckResult> = {
  step: "string", key: "string", type: "string", name: "string", with: "values", describe: "string", hash: "string", passed: "boolean", undefined: "boolean",
  inconclusive: "boolean", issue: "string", argv: "texts", dir: "string", exitCode: "number", durationMs: "number", outputHash: "string", outputBytes: "number",
  head: "string", tail: "string", workspace: "workspace", instance: "string", killed: "number", reused: "boolean", sandboxed: "boolean",
};
const workspaceShape: Shape<Schemas["Workspace"]> = {
  root: "string", host: "string", connect: "boolean", commit: "string", tree: "string", workTree: "string", dirty: "texts", dirtyCount: "number", dirtyHash: "string",
  dirtyStates: "texts", ignoreFiles: "texts",
};

/** Returns the result in an event of a check. An imported bundle may contain anything: data of another form is no result. */
export function readCheck({ kind, data }: Pick<Schemas["Event"], "kind" | "data">): CheckResult | undefined {
  if (kind !== "check_run" || !hasShape(data, checkShape)) return undefined;
  const check = data as Partial<CheckResult>;
  return check.describe === undefined || check.passed === undefined || check.durationMs === undefined ? undefined : (check as CheckResult);
}

function hasShape<T>(v: unknown, shape: Shape<T>): boolean {
  if (!isObject(v)) return false;
  return (Object.keys(shape) as (keyof T & string)[]).every((name) => v[name] === undefined || isOf(v[name], shape[name]));
}

function isOf(v: unknown, of: Kind): boolean {
  if (of === "texts") return Array.isArray(v) && v.every((text) => typeof text === "string");
  if (of === "values") return isObject(v) && Object.values(v).every((text) => typeof text === "string");
  return of === "workspace" ? hasShape(v, workspaceShape) : typeof v === of;
}

/** Returns the checks of each event that completes a step or refuses an output, by its number: their events directly precede it. */
export function checksByEvent(events: Schemas["Event"][]): Map<number, CheckResult[]> {
  const checks = new Map<number, CheckResult[]>();
  let before: CheckResult[] = [];
  for (const event of events) {
    if (event.kind === "check_run") {
      const check = readCheck(event);
      if (check !== undefined) before.push(check);
      continue;
    }
    if (before.length > 0) checks.set(event.seq, before);
    before = [];
  }
  return checks;
}

/** Counts the completed steps, and those that a check decided. */
export function countProved(events: Schemas["Event"][]): { proved: number; done: number } {
  const done = events.filter((e) => e.kind === "step_completed");
  return { proved: done.filter((e) => e.label === "evidence").length, done: done.length };
}

/** Returns the result of a check in a word, which has a colour and a shape in Status. */
export function outcomeOf(check: ShownCheck): "passed" | "failed" | "not finished" | "not defined" {
  if (check.undefined === true) return "not defined";
  if (check.inconclusive === true) return "not finished";
  return check.passed ? "passed" : "failed";
}

/** Explains why a step is evidence or a claim. */
export function explainLabel(label: StepLabel, checks: ShownCheck[], isImported: boolean): string {
  if (label === "evidence") return "Guideway executed a check that decided that the step is done.";
  if (isImported) return "The step comes from an imported bundle: this server executed none of its checks.";
  if (checks.length === 0) return "Only the agent reports that the step is done. Guideway executed no check.";
  if (checks.every((c) => c.undefined === true)) return "Only the agent reports that the step is done: the project does not define the checks of the step.";
  return "The checks of the step did not decide: its criteria accept the output with any result of them.";
}

/** Returns a command as a line; an argument that a shell would split is quoted. */
export function commandLine(argv: string[]): string {
  return argv.map((a) => (/^[\w@%+=:,./{}~-]+$/.test(a) ? a : JSON.stringify(a))).join(" ");
}

/** Returns the checks of the answer at a gate in the form of results. */
export function fromSummary({ check, output, ...rest }: Schemas["CheckSummary"]): ShownCheck {
  return { ...rest, describe: check, ...(output === undefined ? {} : { tail: output }) };
}
