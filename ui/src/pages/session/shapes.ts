/** The shapes of data that have a look of their own. */
export type Shape = "nothing" | "scalar" | "text" | "words" | "table" | "timeline" | "cards" | "pairs" | "parts" | "list";

type Json = Record<string, unknown>;

const timeNames = ["time", "timestamp", "at", "date", "when"];
/** A table has at most so many columns, and cells at most so many characters. */
const mostColumns = 6;
const longestCell = 80;

/** Chooses how a value is shown. Any JSON has a shape. */
export function shapeOf(value: unknown): Shape {
  if (value === null || value === undefined || value === "") return "nothing";
  if (typeof value === "string") return value.length > longestCell || value.includes("\n") ? "text" : "scalar";
  if (typeof value !== "object") return "scalar";
  if (Array.isArray(value)) return shapeOfList(value);
  const members = Object.values(value);
  if (members.length === 0) return "nothing";
  return members.every(isShort) ? "pairs" : "parts";
}

function shapeOfList(list: unknown[]): Shape {
  if (list.length === 0) return "nothing";
  if (list.every((v) => typeof v !== "object" || v === null)) return "words";
  if (!list.every(isObject)) return "list";
  if (list.every((o) => timeOf(o) !== undefined)) return "timeline";
  const columns = columnsOf(list);
  return columns.length <= mostColumns && list.length > 1 && list.every((o) => Object.values(o).every(isShort)) ? "table" : "cards";
}

/** The names of all members, in the order in which they first come. */
export function columnsOf(list: Json[]): string[] {
  return [...new Set(list.flatMap((o) => Object.keys(o)))];
}

/** The member that says when, if there is one. */
export function timeOf(o: Json): string | undefined {
  return timeNames.find((name) => typeof o[name] === "string" && !Number.isNaN(Date.parse(o[name] as string)));
}

/** Whether a value fits into a cell. */
export function isShort(v: unknown): boolean {
  return v === null || typeof v === "number" || typeof v === "boolean" || (typeof v === "string" && v.length <= longestCell && !v.includes("\n"));
}

export function isObject(v: unknown): v is Json {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

/** The member that a card is called by. */
export function titleOf(o: Json): { name: string; text: string } | undefined {
  for (const name of ["title", "name", "label", "summary", "description", "text", "id"]) {
    const text = o[name];
    if (typeof text === "string" && text !== "" && text.length <= 160) return { name, text };
  }
  return undefined;
}

/** A member's name in words: ruledOut and ruled_out are "Ruled out". */
export function nameInWords(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`).replaceAll(/[_-]+/g, " ").trim();
  return words === "" ? name : words.charAt(0).toUpperCase() + words.slice(1);
}

/** The sections of a document: what _meta.order names first, then the rest. */
export function sectionsOf(data: Json): { name: string; value: unknown; collapsed: boolean }[] {
  const meta = isObject(data["_meta"]) ? data["_meta"] : {};
  const order = Array.isArray(meta["order"]) ? meta["order"].filter((n): n is string => typeof n === "string") : [];
  const collapsible = Array.isArray(meta["collapsible"]) ? meta["collapsible"] : [];
  const names = Object.keys(data).filter((n) => n !== "dashboard" && n !== "_meta" && shapeOf(data[n]) !== "nothing");
  const first = order.filter((n) => names.includes(n));
  return [...first, ...names.filter((n) => !first.includes(n))].map((name) => ({ name, value: data[name], collapsed: collapsible.includes(name) }));
}
