import { useLocation } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useWorkflowText } from "../../api/reads";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { readDraft } from "./draft";
import { Editor } from "./Editor";
import "./editor.css";

/** The id of drafts of what has no id yet; no workflow has it. */
const newID = "(new)";

const template = `# A workflow leads an agent one step at a time.
id: my-workflow
name: My workflow
description: What it is for, in one sentence.
version: 1.0.0
steps:
  - id: plan
    title: Plan
    prompt: |
      Say what is to be done, in which order, and how you will know that it is done.
    validationCriteria:
      - type: length
        min: 40
        message: Say more of the plan.
  - id: work
    title: Work
    prompt: Do it, one part of the plan after the other.
    requireConfirmation: true
`;

/** Edits a definition, or begins a new one. */
export function EditorPage({ id }: { id?: string }) {
  const [, go] = useLocation();
  const text = useWorkflowText(id ?? "", id !== undefined);
  useTitle(id === undefined ? "New workflow" : `Edit ${text.data?.workflow.name ?? id}`);
  const saved = (s: Schemas["WorkflowText"]) => go(`/workflows/${encodeURIComponent(s.workflow.id)}`);
  if (id === undefined) return <Editor draftOf={newID} began={readDraft(newID) ?? { text: template, base: "" }} original={template} onSaved={saved} />;
  if (text.isPending) return <Skeleton rows={12} />;
  if (text.isError) {
    if (text.error instanceof ApiError && text.error.status === 404) return <Missing what="workflow" />;
    return <Failed error={text.error} doing="read the source" retry={() => void text.refetch()} />;
  }
  const served = text.data;
  return <Editor draftOf={id} served={served} began={readDraft(id) ?? { text: served.text, base: served.base }} original={served.text} onSaved={saved} onReread={() => void text.refetch()} />;
}
