import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import type { Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { json } from "@codemirror/lang-json";
import { yaml } from "@codemirror/lang-yaml";
import { tags } from "@lezer/highlight";

/** The colours are the application's tokens, so that both looks follow by themselves. */
const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--ink)", fontSize: "12px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "18px" },
  ".cm-content": { caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-gutters": { backgroundColor: "var(--surface-sunken)", color: "var(--ink-quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--surface-hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 28%, var(--surface))" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--surface-raised)", color: "var(--ink)", border: "1px solid var(--line-strong)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--surface-chosen)", color: "var(--ink)" },
  ".cm-diagnostic": { fontFamily: "var(--sans)", padding: "4px 8px", maxWidth: "72ch" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--waiting)" },
  ".cm-button, .cm-textfield": { backgroundColor: "var(--surface)", backgroundImage: "none", border: "1px solid var(--line-strong)", color: "var(--ink)", borderRadius: "4px" },
  ".cm-changedLine, &.cm-merge-b .cm-changedLine": { backgroundColor: "color-mix(in srgb, var(--done) 14%, var(--surface))" },
  ".cm-deletedChunk": { backgroundColor: "color-mix(in srgb, var(--failed) 12%, var(--surface))" },
  ".cm-changedText": { background: "color-mix(in srgb, var(--done) 30%, var(--surface)) !important" },
  ".cm-deletedText, .cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--failed) 26%, var(--surface)) !important" },
  ".cm-collapsedLines": { background: "var(--surface-sunken)", color: "var(--ink-quiet)" },
});

const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: tags.string, color: "var(--done)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--refused)" },
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--running)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--ink-quiet)", fontStyle: "italic" },
]);

/** How texts of any language look. */
export const looks: Extension = [look, syntaxHighlighting(highlight), lineNumbers(), EditorView.lineWrapping];

/** How definitions look, in the editor and in what compares two. */
export function reading(format: string): Extension {
  return [format === "json" ? json() : yaml(), looks];
}

/** What an editor can do besides. */
export const editing: Extension = [
  history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(), autocompletion(), foldGutter(), lintGutter(),
  highlightActiveLine(), highlightActiveLineGutter(), highlightSelectionMatches(), search({ top: true }),
  keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
];
