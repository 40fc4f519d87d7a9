import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript";
import { setDiagnostics } from "@codemirror/lint";
import { EditorView } from "@codemirror/view";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Schemas } from "../../api/client";
import { useHookTypes } from "../../api/hooks";
import { Code } from "../editor/Code";
import { markOf } from "../editor/findings";
import { editing, looks } from "../editor/look";
import { offered, readTypes, type ApiTypes } from "./apiTypes";

interface Props {
  label: string;
  /** The script to begin with; a new key of React begins anew. */
  script: string;
  found: Schemas["Diagnostic"][];
  onChange: (script: string) => void;
}

/** An editor for a script, with completion from the API's types and findings at their lines. */
export function ScriptEditor({ label, script, found, onChange }: Props) {
  const [start] = useState(script);
  const declared = useHookTypes();
  const types = useMemo(() => (declared.data === undefined ? undefined : readTypes(declared.data.types)), [declared.data]);
  const view = useRef<EditorView | undefined>(undefined);
  const tell = useRef(onChange);
  useEffect(() => { tell.current = onChange; });
  const mark = useCallback(() => {
    const v = view.current;
    if (v !== undefined) v.dispatch(setDiagnostics(v.state, found.map((d) => markOf(d, v.state.doc))));
  }, [found]);
  useEffect(mark, [mark]);
  const extensions = useMemo(() => [
    javascript(), looks, editing,
    types === undefined ? [] : javascriptLanguage.data.of({ autocomplete: (c: CompletionContext) => complete(types, c) }),
    EditorView.updateListener.of((u) => { if (u.docChanged) tell.current(u.state.doc.toString()); }),
  ], [types]);
  const ready = useCallback((v: EditorView) => { view.current = v; }, []);
  return <div className="script"><Code label={label} text={start} extensions={extensions} onReady={ready} /></div>;
}

/** Completes names of the API, and the members of what they have. */
function complete(types: ApiTypes, context: CompletionContext): CompletionResult | null {
  const word = context.matchBefore(/[\w$.?]*/);
  if (word === null || (word.from === word.to && !context.explicit)) return null;
  const path = word.text.replaceAll("?.", ".").split(".");
  const last = path.pop() ?? "";
  const found = offered(types, path);
  if (found.length === 0) return null;
  return {
    from: word.to - last.length, validFor: /^[\w$]*$/,
    options: found.map((m) => ({ label: m.name, type: m.type.startsWith("(") ? "function" : "property", detail: short(m.type), ...(m.doc === "" ? {} : { info: m.doc }) })),
  };
}

function short(type: string): string {
  const line = type.replace(/\s+/g, " ");
  return line.length > 48 ? `${line.slice(0, 47)}…` : line;
}
