/** A change that is not saved yet, and the version that it began from. */
export interface Draft {
  text: string;
  base: string;
}

const keyOf = (id: string) => `guideway-draft:${id}`;

/** The draft of a workflow; drafts are this browser's alone. */
export function readDraft(id: string): Draft | undefined {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(keyOf(id)) ?? "null");
    if (typeof value !== "object" || value === null || !("text" in value) || !("base" in value)) return undefined;
    return typeof value.text === "string" && typeof value.base === "string" ? { text: value.text, base: value.base } : undefined;
  } catch {
    return undefined; // storage is off, or holds something else
  }
}

/** Keeps a draft; says whether it could. */
export function keepDraft(id: string, draft: Draft): boolean {
  try {
    localStorage.setItem(keyOf(id), JSON.stringify(draft));
    return true;
  } catch {
    return false;
  }
}

export function dropDraft(id: string) {
  try {
    localStorage.removeItem(keyOf(id));
  } catch {
    // Storage is off: there was none.
  }
}
