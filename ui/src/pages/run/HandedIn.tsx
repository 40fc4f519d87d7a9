import type { Schemas } from "../../api/client";
import { foldText } from "../../parts/fold";
import { Checks } from "./Checks";
import { fromSummary } from "./evidence";
import { LabelBadge } from "./LabelBadge";

interface Props {
  submission: Schemas["Submission"] | undefined;
  isOpen: boolean;
  onOpen: () => void;
}

/** Reports whether a part of the output is not shown until the person opens it. */
export function isFolded(submission: Schemas["Submission"] | undefined): boolean {
  return submission !== undefined && [submission.output, submission.notes ?? ""].some((text) => foldText(text).rest !== "");
}

/** The whole output that a gate is about, below what Guideway checked of it. */
export function HandedIn({ submission, isOpen, onOpen }: Props) {
  if (submission === undefined) return <p className="quiet">There is no output to review at this gate.</p>;
  const checks = submission.checks?.map(fromSummary) ?? [];
  return (
    <div className="handed-in">
      <p><LabelBadge label={submission.label} checks={checks} /></p>
      <Checks list={checks} />
      <Text title="Output" text={submission.output} isOpen={isOpen} onOpen={onOpen} />
      <Text title="Notes" text={submission.notes ?? ""} isOpen={isOpen} onOpen={onOpen} />
    </div>
  );
}

function Text({ title, text, isOpen, onOpen }: { title: string; text: string } & Omit<Props, "submission">) {
  if (text === "") return null;
  const { head, rest } = foldText(text);
  const folded = rest !== "" && !isOpen;
  return (
    <>
      <h3>{title}</h3>
      <pre data-folded={folded}>{folded ? head : text}</pre>
      {folded ? <button type="button" className="button handed-in-rest" onClick={onOpen}>Show {rest}</button> : null}
    </>
  );
}
