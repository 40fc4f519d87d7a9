/** What the member dashboard of a session document says, as far as it does. */
export interface Head {
  title?: string;
  subtitle?: string;
  status?: string;
  progress?: number;
  confidence?: number;
  phase?: string;
  step?: string;
}

/** Reads the member dashboard of any JSON: agents write what they like. */
export function headOf(dashboard: unknown): Head {
  if (typeof dashboard !== "object" || dashboard === null) return {};
  const d = dashboard as Record<string, unknown>;
  const head: Head = {};
  const text = (name: string) => (typeof d[name] === "string" && d[name] !== "" ? { value: d[name] } : undefined);
  const number = (name: string) => (typeof d[name] === "number" && Number.isFinite(d[name]) ? { value: d[name] } : undefined);
  const [title, subtitle, status, phase, step] = ["title", "subtitle", "status", "currentPhase", "currentStep"].map(text);
  const [progress, confidence] = ["progress", "confidence"].map(number);
  if (title !== undefined) head.title = title.value;
  if (subtitle !== undefined) head.subtitle = subtitle.value;
  if (status !== undefined) head.status = status.value;
  if (phase !== undefined) head.phase = phase.value;
  if (step !== undefined) head.step = step.value;
  if (progress !== undefined) head.progress = progress.value;
  if (confidence !== undefined) head.confidence = confidence.value;
  return head;
}
