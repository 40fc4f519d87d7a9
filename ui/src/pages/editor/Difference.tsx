import { unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { useMemo } from "react";
import { Code } from "./Code";
import { reading } from "./look";

/** What differs between two texts, in one column; what is the same is folded away. */
export function Difference({ before, after, format }: { before: string; after: string; format: string }) {
  const extensions = useMemo(() => [
    reading(format), EditorState.readOnly.of(true), EditorView.editable.of(false),
    unifiedMergeView({ original: before, mergeControls: false, gutter: true, collapseUnchanged: { margin: 2, minSize: 5 } }),
  ], [before, format]);
  return before === after ? <p className="quiet">Nothing has changed.</p> : <div className="difference"><Code label="What has changed" text={after} extensions={extensions} /></div>;
}
