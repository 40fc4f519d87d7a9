import { isObject, list, type Json } from "../../graph/json";

/** Where a text is to be completed: the path to it, and what is being written. */
export interface Place {
  path: (string | number)[];
  /** A member's name, or the value of the member that the path ends with. */
  what: "name" | "value";
  from: number;
  /** Whether the text stands in quotes already. */
  quoted: boolean;
  /** The type that the object around a member's name has, if it is written. */
  type?: string;
}

/** What a schema offers at a place. */
export interface Offer {
  text: string;
  detail: string;
}

/** The members or values that a JSON Schema knows at a place. */
export function offers(schema: unknown, place: Place): Offer[] {
  const at = place.path.reduce<Json[]>((now, part) => now.flatMap((s) => step(s, part, schema)), spread(schema, schema));
  const found = new Map<string, Offer>();
  for (const s of at.filter((s) => place.type === undefined || allows(s, place.type))) {
    for (const offer of place.what === "name" ? names(s, schema) : values(s)) if (!found.has(offer.text)) found.set(offer.text, offer);
  }
  return [...found.values()];
}

/** A schema with its references followed and its alternatives side by side. */
function spread(schema: unknown, root: unknown, depth = 0): Json[] {
  if (!isObject(schema) || depth > 12) return [];
  const target = typeof schema["$ref"] === "string" ? spread(follow(root, schema["$ref"]), root, depth + 1) : [];
  const parts = ["allOf", "anyOf", "oneOf"].flatMap((word) => list(schema[word])).concat([schema["then"], schema["else"]].filter(isObject));
  return [schema, ...target, ...parts.flatMap((s) => spread(s, root, depth + 1))];
}

function follow(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return undefined;
  return reference.slice(1).split("/").filter((p) => p !== "").reduce<unknown>(
    (at, part) => (isObject(at) ? at[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined), root);
}

function step(schema: Json, part: string | number, root: unknown): Json[] {
  if (typeof part === "number") return spread(schema["items"], root);
  const members = isObject(schema["properties"]) ? schema["properties"] : {};
  return part in members ? spread(members[part], root) : spread(schema["additionalProperties"], root);
}

/** Whether a schema allows a value of the member "type"; the alternatives of a rule differ in it. */
function allows(schema: Json, type: string): boolean {
  const member = isObject(schema["properties"]) ? schema["properties"]["type"] : undefined;
  if (!isObject(member)) return schema["additionalProperties"] !== false;
  return "const" in member ? member["const"] === type : !Array.isArray(member["enum"]) || member["enum"].includes(type);
}

function names(schema: Json, root: unknown): Offer[] {
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const members = isObject(schema["properties"]) ? schema["properties"] : {};
  return Object.entries(members).map(([text, s]) => {
    const said = spread(s, root).map((o) => o["description"]).find((d) => typeof d === "string");
    return { text, detail: (required.includes(text) ? "required · " : "") + (typeof said === "string" ? said : "") };
  });
}

function values(schema: Json): Offer[] {
  const all: unknown[] = Array.isArray(schema["enum"]) ? schema["enum"] : "const" in schema ? [schema["const"]] : schema["type"] === "boolean" ? [true, false] : [];
  return all.filter((v) => typeof v === "string" || typeof v === "boolean" || typeof v === "number").map((v) => ({ text: String(v), detail: typeof v === "string" ? "" : typeof v }));
}
