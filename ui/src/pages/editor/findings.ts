import { linter, type Diagnostic } from "@codemirror/lint";
import type { Extension, Text } from "@codemirror/state";
import type { Schemas } from "../../api/client";
import { judge } from "../../api/commands";

/** Has the server judge the text after each pause, and marks what it finds. */
export function liveFindings(told: (verdict: Schemas["Verdict"] | Error) => void): Extension {
  return linter(async (view) => {
    const doc = view.state.doc;
    try {
      const verdict = await judge(doc.toString());
      if (view.state.doc === doc) told(verdict);
      return verdict.diagnostics.map((d) => markOf(d, doc));
    } catch (error) {
      told(error instanceof Error ? error : new Error(String(error)));
      return [];
    }
  }, { delay: 350 });
}

/** A finding at its line, in the words and with the code of guideway validate. */
export function markOf(d: Schemas["Diagnostic"], doc: Text): Diagnostic {
  const line = doc.line(Math.min(Math.max(1, d.line ?? 1), doc.lines));
  const from = Math.min(line.from + Math.max(0, (d.column ?? 1) - 1), line.to);
  return {
    from, to: Math.max(from, line.to),
    severity: d.severity === "error" || d.severity === "warning" ? d.severity : "info",
    source: d.code, message: d.message + (d.fix === undefined ? "" : `\n${d.fix}`),
  };
}
