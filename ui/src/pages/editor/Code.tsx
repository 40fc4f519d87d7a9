import type { Extension } from "@codemirror/state";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useEffect, useRef } from "react";

interface Props {
  label: string;
  /** The text to begin with; another one starts anew. */
  text: string;
  extensions: Extension;
  onReady?: (view: EditorView) => void;
}

/**
 * A CodeMirror editor. It lives in a shadow tree: there its styles are adopted as
 * style sheets, which the content security policy allows, and style elements it
 * would stop.
 */
export function Code({ label, text, extensions, onReady }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const kept = useRef({ from: text, now: text }); // what was typed stays when the extensions change
  useEffect(() => {
    if (host.current === null) return;
    const root = shadowOf(host.current);
    if (kept.current.from !== text) kept.current = { from: text, now: text };
    const view = new EditorView({
      root, parent: root,
      state: EditorState.create({ doc: kept.current.now, extensions: [extensions, EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" })] }),
    });
    onReady?.(view);
    return () => {
      kept.current = { from: text, now: view.state.doc.toString() };
      view.destroy();
    };
  }, [label, text, extensions, onReady]);
  return <div ref={host} className="code" />;
}

/** The shadow tree of an element, made at the first call. */
export function shadowOf(host: HTMLElement): ShadowRoot {
  return host.shadowRoot ?? host.attachShadow({ mode: "open" });
}
