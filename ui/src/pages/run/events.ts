import type { Schemas } from "../../api/client";
import type { StatusWord } from "../../parts/Status";
import { outcomeOf, readCheck } from "./evidence";

/** An event in words. */
export interface Told {
  word: string;
  kind?: StatusWord;
  about: string;
  text: string;
  /** The criteria that a refused output failed. */
  failed: string[];
}

const kinds: Record<string, StatusWord> = {
  step_completed: "done", run_completed: "done", loop_ended: "done", loop_completed: "done", phase_exited: "done",
  step_skipped: "skipped", phase_skipped: "skipped", decision_passed: "skipped",
  command_refused: "refused", gate_declined: "refused", client_stopped: "refused", run_aborted: "failed",
  form_unanswered: "waiting", gate_opened: "waiting", checkpoint_reached: "waiting", decision_offered: "waiting",
};

const checkKinds: Record<ReturnType<typeof outcomeOf>, { word: string; kind: StatusWord }> = {
  "passed": { word: "Check passed", kind: "done" }, "failed": { word: "Check failed", kind: "refused" },
  "not finished": { word: "Check not finished", kind: "failed" }, "not defined": { word: "Check not defined", kind: "skipped" },
};

/** Says what an event is about: its kind in words, the element, and what was handed in. */
export function told(event: Schemas["Event"], titles: Map<string, string>): Told {
  const data = typeof event.data === "object" && event.data !== null ? (event.data as Record<string, unknown>) : {};
  const check = readCheck(event);
  if (check !== undefined) return { ...checkKinds[outcomeOf(check)], about: [aboutOf(data, titles), check.describe].filter((t) => t !== "").join(" · "), text: "", failed: [] };
  const kind = kinds[event.kind];
  return {
    word: sentence(event.kind),
    ...(kind === undefined ? {} : { kind }),
    about: aboutOf(data, titles),
    text: textOf(data),
    failed: failedIn(data),
  };
}

/** A kind of event as a person reads it. */
export function sentence(kind: string): string {
  const word = kind.replaceAll("_", " ");
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function aboutOf(data: Record<string, unknown>, titles: Map<string, string>): string {
  const step = stringOf(data["step"]);
  const parts = [titles.get(step) ?? step, stringOf(data["option"]), stringOf(data["target"]), stringOf(data["rule"])];
  const round = data["round"];
  if (typeof round === "number") parts.push(`round ${round}`);
  return parts.filter((p) => p !== "").join(" · ");
}

/** Reports whether an event has an output: of a completed step, or of a refused attempt. */
export function hasOutput(event: Schemas["Event"]): boolean {
  if (event.kind === "step_completed") return true;
  return event.kind === "command_refused" && stringOf((event.data as Record<string, unknown> | undefined)?.["output"]) !== "";
}

function failedIn(data: Record<string, unknown>): string[] {
  const issues = data["issues"];
  return Array.isArray(issues) ? issues.filter((i) => typeof i === "string") : [];
}

function textOf(data: Record<string, unknown>): string {
  const parts = [stringOf(data["output"]), stringOf(data["notes"]), stringOf(data["reason"]), stringOf(data["message"])].filter((p) => p !== "");
  if (typeof data["vars"] === "object" && data["vars"] !== null) parts.push(JSON.stringify(data["vars"], null, 2));
  return parts.join("\n\n");
}

function stringOf(v: unknown): string {
  return typeof v === "string" ? v : "";
}
