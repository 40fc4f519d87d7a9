import { Explained } from "../../parts/Explained";
import { explainLabel, type ShownCheck, type StepLabel } from "./evidence";
import "./evidence.css";

const words: Record<StepLabel, string> = { evidence: "Evidence", claim: "Claim" };

/** The label of a completed step, with the reason for it. */
export function LabelBadge({ label, checks, isImported = false }: { label: StepLabel; checks: ShownCheck[]; isImported?: boolean }) {
  return <Explained className="label-badge" label={label} explanation={explainLabel(label, checks, isImported)}><LabelText label={label} /></Explained>;
}

/** The label of a completed step as text, for a place that takes no control. */
export function PlainLabel({ label }: { label: StepLabel }) {
  return <span className="label-badge" data-label={label}><LabelText label={label} /></span>;
}

function LabelText({ label }: { label: StepLabel }) {
  return <><span aria-hidden="true">{label === "evidence" ? "◆" : "◇"}</span> {words[label]}</>;
}
