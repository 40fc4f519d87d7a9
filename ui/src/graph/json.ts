/** An object of a document that is read as it comes. */
export type Json = Record<string, unknown>;

/** The objects of a list; nothing where it is no list. */
export function list(v: unknown): Json[] {
  return Array.isArray(v) ? v.filter(isObject) : [];
}

export function isObject(v: unknown): v is Json {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** A text; "" where it is none. */
export function text(v: unknown): string {
  return typeof v === "string" ? v : "";
}

/** A member that is left out where there is nothing to say. */
export function noteOf(note: string): { note?: string } {
  return note === "" ? {} : { note };
}
