import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import type { Schemas } from "../../api/client";
import { checkHook } from "../../api/hooks";
import { began, edited, redone, undone, type History } from "./history";
import { textOf, type HookDocument } from "./document";

type Move = { do: "edit"; doc: HookDocument; of: string | undefined } | { do: "undo" } | { do: "redo" } | { do: "begin"; doc: HookDocument };

interface Edited {
  history: History<HookDocument>;
  /** Counts the times that the document was taken back, so that editors of texts begin anew. */
  epoch: number;
}

function step(s: Edited, m: Move): Edited {
  switch (m.do) {
    case "edit": return { ...s, history: edited(s.history, m.doc, m.of) };
    case "undo": return { history: undone(s.history), epoch: s.epoch + 1 };
    case "redo": return { history: redone(s.history), epoch: s.epoch + 1 };
    case "begin": return { history: began(m.doc), epoch: s.epoch + 1 };
  }
}

/** A document that is edited, with the way back. */
export function useEditing(start: HookDocument) {
  const [{ history, epoch }, go] = useReducer(step, { history: began(start), epoch: 0 });
  return {
    doc: history.now, epoch, canUndo: history.past.length > 0, canRedo: history.future.length > 0,
    edit: useCallback((doc: HookDocument, of?: string) => go({ do: "edit", doc, of }), []),
    undo: useCallback(() => go({ do: "undo" }), []), redo: useCallback(() => go({ do: "redo" }), []),
    begin: useCallback((doc: HookDocument) => go({ do: "begin", doc }), []),
  };
}

/** How long a pause is after which the server is asked. */
const pause = 350;

/** What the server says of the document, after each pause. */
export function useVerdict(doc: HookDocument, source: string): { verdict: Schemas["HookVerdict"] | undefined; of: HookDocument | undefined; trouble: string | undefined } {
  const [said, setSaid] = useState<{ verdict: Schemas["HookVerdict"]; of: HookDocument }>();
  const [trouble, setTrouble] = useState<string | undefined>();
  const asked = useRef("");
  useEffect(() => {
    const text = `${source}\n${textOf(doc)}`;
    const timer = setTimeout(() => {
      asked.current = text;
      checkHook(doc, source).then(
        (verdict) => { if (asked.current === text) { setSaid({ verdict, of: doc }); setTrouble(undefined); } },
        (error: unknown) => { if (asked.current === text) setTrouble(error instanceof Error ? error.message : String(error)); },
      );
    }, said === undefined ? 0 : pause);
    return () => clearTimeout(timer);
    // The first verdict is asked for at once; later ones do not ask again.
  }, [doc, source]);
  return { verdict: said?.verdict, of: said?.of, trouble };
}
