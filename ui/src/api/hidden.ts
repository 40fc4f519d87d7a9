// The set is that of internal/platform/visible. A carriage return without a line feed
// overwrites its line.
const hidden = /\r(?!\n)|(?![\n\t\r])[\p{Cf}\p{Cc}\p{Co}\p{Zl}\p{Zp}\u034F\u115F\u1160\u3164\uFFA0\uFE00-\uFE0D\u{E0100}-\u{E01EF}]/gu;

/** Accents above the fourth on one character paint over the line above. */
const stacked = /(\p{M}{4})(\p{M}+)/gu;

/** Returns a text with its hidden characters as \u{…}: control, direction and zero-width characters. */
export function escapeHidden(text: string): string {
  return text.replace(hidden, escapeAll).replace(stacked, (_, kept: string, rest: string) => kept + escapeAll(rest));
}

function escapeAll(text: string): string {
  return Array.from(text, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}}`).join("");
}

/** Returns a copy of JSON data with the hidden characters of all texts and names escaped. */
export function escapeData<T>(data: T): T {
  return escapeValue(data) as T;
}

function escapeValue(v: unknown): unknown {
  if (typeof v === "string") return escapeHidden(v);
  if (Array.isArray(v)) return v.map(escapeValue);
  if (typeof v !== "object" || v === null) return v;
  return Object.fromEntries(Object.entries(v).map(([key, value]) => [escapeHidden(key), escapeValue(value)]));
}

const shown = /^\/api\/(runs|sessions|projects|checkpoints|requests|machines|machine-runs|workflows|catalog)(\/|$)/;

/** Reports whether the data at an address is only shown. Sources of definitions are edited and saved, exported runs are saved; they stay as they are. */
export function isOnlyShown(url: string): boolean {
  const path = url.replace(/^https?:\/\/[^/]*/, "").replace(/[?#].*$/, "");
  return shown.test(path) && !/\/(source|export)$/.test(path);
}
