/** What the member dashboard of a session document says, as far as it does. */
export interface Head {
  title?: string;
  status?: string;
  progress?: number;
}

/** Reads the member dashboard of any JSON: agents write what they like. */
export function headOf(dashboard: unknown): Head {
  if (typeof dashboard !== "object" || dashboard === null) return {};
  const d = dashboard as Record<string, unknown>;
  const head: Head = {};
  if (typeof d["title"] === "string" && d["title"] !== "") head.title = d["title"];
  if (typeof d["status"] === "string" && d["status"] !== "") head.status = d["status"];
  if (typeof d["progress"] === "number") head.progress = d["progress"];
  return head;
}
