// The set is that of internal/platform/visible; both pass its testdata/cases.json. A carriage
// return without a line feed overwrites its line.
const hiddenSet = String.raw`\p{Cf}\p{Cc}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}`;
const hidden = String.raw`\r(?!\n)|(?![\n\t\r])[${hiddenSet}]`;
const inScript = new RegExp(hidden, "gu");

/** The selector for the text form or the emoji form of a visible character outside ASCII or of a keycap is not hidden in prose. */
const form = String.raw`[^\x00-\x7F\s${hiddenSet}][\uFE0E\uFE0F]|[0-9#*][\uFE0E\uFE0F](?=\u20E3)`;
const inProse = new RegExp(`(${form})|${hidden}`, "gu");

/** Accents above the fourth on one character paint over the line above. */
const stacked = /(\p{M}{4})(\p{M}+)/gu;

/** Returns a text for people with its hidden characters as \u{…}: control, direction and zero-width characters. */
export function escapeHidden(text: string): string {
  return escapeStacked(text.replace(inProse, (found: string, kept?: string) => kept ?? escapeAll(found)));
}

/** Is escapeHidden for a script: an identifier may contain a selector, so none is kept. */
export function escapeScript(script: string): string {
  return escapeStacked(script.replace(inScript, escapeAll));
}

function escapeStacked(text: string): string {
  return text.replace(stacked, (_, kept: string, rest: string) => kept + escapeAll(rest));
}

function escapeAll(text: string): string {
  return Array.from(text, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}}`).join("");
}

/** Returns a copy of JSON data with the hidden characters of all texts and names escaped. The member "script" of a machine is its script. */
export function escapeData<T>(data: T): T {
  return escapeValue(data) as T;
}

function escapeValue(v: unknown): unknown {
  if (typeof v === "string") return escapeHidden(v);
  if (Array.isArray(v)) return v.map(escapeValue);
  if (typeof v !== "object" || v === null) return v;
  return Object.fromEntries(Object.entries(v).map(([key, value]) => [escapeHidden(key), key === "script" && typeof value === "string" ? escapeScript(value) : escapeValue(value)]));
}

const shown = /^\/api\/(runs|sessions|projects|checkpoints|requests|machines|machine-runs|workflows|catalog)(\/|$)/;

/** Reports whether the data at an address is only shown. Sources of definitions are edited and saved, exported runs are saved; they stay as they are. */
export function isOnlyShown(url: string): boolean {
  const path = url.replace(/^https?:\/\/[^/]*/, "").replace(/[?#].*$/, "");
  return shown.test(path) && !/\/(source|export)$/.test(path);
}
