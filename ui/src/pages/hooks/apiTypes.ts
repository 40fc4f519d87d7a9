/** What a member of the scripts' API is. */
export interface Member {
  name: string;
  /** Its type, as it is declared. */
  type: string;
  doc: string;
}

/** The scripts' API, read out of its TypeScript declarations. */
export interface ApiTypes {
  /** What scripts find by name. */
  globals: Member[];
  /** The members of a type or of an object's type. */
  membersOf: (type: string) => Member[];
}

/** Reads api.d.ts, which is plain: interfaces, and declared functions, constants and classes. */
export function readTypes(source: string): ApiTypes {
  const interfaces = new Map<string, string>();
  const globals: Member[] = [];
  for (const m of source.matchAll(/(?:\/\*\*((?:(?!\*\/)[^])*)\*\/\s*)?(?:^|\n)(?:declare )?(interface|class|const|function) (\w+)/g)) {
    const [whole, doc = "", word, name = ""] = m;
    const rest = source.slice(m.index + whole.length);
    const block = rest.indexOf("{");
    const end = rest.indexOf(";");
    if (word === "interface" || word === "class") interfaces.set(name, blockAt(rest, block));
    if (word === "interface") continue;
    const type = word === "const" && block >= 0 && block < end ? `{${blockAt(rest, block)}}` : rest.slice(0, end).replace(/^\s*:\s*/, "").trim();
    globals.push({ name, type: word === "class" ? name : type, doc: cleaned(doc) });
  }
  return { globals, membersOf: (type) => members(type.startsWith("{") ? type.slice(1, -1) : (interfaces.get(type.replace(/\[\]$/, "")) ?? "")) };
}

/** What stands in the braces that open at a place. */
function blockAt(text: string, open: number): string {
  let depth = 0;
  for (let i = open; i < text.length; i++) {
    if (text[i] === "{") depth++;
    if (text[i] === "}" && --depth === 0) return text.slice(open + 1, i);
  }
  return "";
}

/** The members in the body of a type. */
function members(body: string): Member[] {
  const found: Member[] = [];
  let rest = body;
  for (;;) {
    const m = /^\s*(?:\/\*\*((?:(?!\*\/)[^])*)\*\/\s*)?(?:readonly )?(\w+)\??/.exec(rest);
    if (m === null) {
      const next = endOf(rest);
      if (rest.trim() === "" || next >= rest.length) return found;
      rest = rest.slice(next + 1);
      continue;
    }
    const after = rest.slice(m[0].length);
    const end = endOf(after);
    found.push({ name: m[2] ?? "", type: after.slice(0, end).replace(/^\s*:\s*/, "").trim(), doc: cleaned(m[1] ?? "") });
    rest = after.slice(end + 1);
  }
}

/** Where a member ends: at a semicolon or comma outside of all brackets. */
function endOf(text: string): number {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i] ?? "";
    if ("{([<".includes(c)) depth++;
    if ("})]".includes(c) || (c === ">" && text[i - 1] !== "=")) depth--;
    if (depth === 0 && (c === ";" || c === ",")) return i;
  }
  return text.length;
}

function cleaned(doc: string): string {
  return doc.replace(/\s*\*\s*/g, " ").trim();
}

/** What can follow a path such as "context.request." in a script; the names to begin with for "". */
export function offered(types: ApiTypes, path: string[]): Member[] {
  const [first, ...rest] = path;
  if (first === undefined) return types.globals;
  let type = types.globals.find((g) => g.name === first)?.type;
  for (const name of rest) type = type === undefined ? undefined : types.membersOf(type).find((m) => m.name === name)?.type;
  return type === undefined ? [] : types.membersOf(type);
}
