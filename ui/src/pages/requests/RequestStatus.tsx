import type { Schemas } from "../../api/client";
import "../../parts/status.css";
import { statuses } from "./words";

const shapes: Record<string, string> = { done: "✓", skipped: "⤳", refused: "⊘", failed: "✕", waiting: "⬣" };

/** How a request came out, by colour, shape and word. */
export function RequestStatus({ status }: { status: Schemas["RequestStatus"] }) {
  const { word, kind } = statuses[status];
  return <span className="status" data-kind={kind}><span aria-hidden="true">{shapes[kind]}</span> {word}</span>;
}
