import { ensureSyntaxTree, syntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";
import type { SyntaxNode } from "@lezer/common";
import type { Place } from "./schema";

type Path = (string | number)[];

/** Where the cursor stands in a JSON text, by its syntax tree. */
export function placeInJSON(state: EditorState, pos: number): Place | undefined {
  // A busy machine may not have read as far as the cursor yet: wait for it, a little.
  let node = (ensureSyntaxTree(state, pos, 200) ?? syntaxTree(state)).resolveInner(pos, -1);
  const inText = node.name === "String" || node.name === "PropertyName";
  const from = inText ? node.from + 1 : pos;
  let what: Place["what"] | undefined = node.name === "PropertyName" || node.name === "Object" || node.name === "{" ? "name" : undefined;
  if (what === undefined && node.name === "String") what = node.parent?.name === "Property" ? "value" : node.parent?.name === "Object" ? "name" : "value";
  if (what === undefined) return undefined;
  const path: Path = [];
  let type: string | undefined;
  let depth = 0; // the number of objects around the cursor so far
  for (let child = node; ; child = node) {
    if (node.name === "Object" && what === "name" && depth++ === 0) type = typeInJSON(state, node);
    const parent = node.parent;
    if (parent === null) break;
    if (parent.name === "Property" && child.name !== "PropertyName") {
      const name = parent.getChild("PropertyName");
      if (name !== null) path.unshift(state.sliceDoc(name.from + 1, name.to - 1));
    } else if (parent.name === "Array") path.unshift(0);
    node = parent;
  }
  return { path, what, from, quoted: inText, ...(type === undefined ? {} : { type }) };
}

/** The text of the member "type" of an object. */
function typeInJSON(state: EditorState, object: SyntaxNode): string | undefined {
  for (const member of object.getChildren("Property")) {
    const name = member.getChild("PropertyName");
    const value = member.getChild("String");
    if (name !== null && value !== null && state.sliceDoc(name.from, name.to) === '"type"') return state.sliceDoc(value.from + 1, value.to - 1);
  }
  return undefined;
}

const lineOf = /^(\s*)((?:- +)*)(?:(['"]?)([\w$.-]+)\3\s*:(?:\s+(.*))?)?/;

/** Where the cursor stands in a YAML text, by indentation: a text that is being written parses as nothing yet. */
export function placeInYAML(state: EditorState, pos: number): Place | undefined {
  const line = state.doc.lineAt(pos);
  const before = line.text.slice(0, pos - line.from);
  const value = /^(\s*(?:- +)*)([\w$.-]+):\s+(["']?)([\w-]*)$/.exec(before);
  const name = /^(\s*(?:- +)*)([\w$.-]*)$/.exec(before);
  const match = value ?? name;
  if (match === null) return undefined;
  const indent = (match[1] ?? "").length;
  const path = pathAbove(state, line.number, indent, /- *$/.test(match[1] ?? ""));
  if (value !== null) return { path: [...path, value[2] ?? ""], what: "value", from: pos - (value[4] ?? "").length, quoted: value[3] !== "" };
  const type = typeInYAML(state, line.number, indent);
  return { path, what: "name", from: pos - (name?.[2] ?? "").length, quoted: false, ...(type === undefined ? {} : { type }) };
}

/** The value of the member "type" of the object whose members begin at a column. */
function typeInYAML(state: EditorState, number: number, column: number): string | undefined {
  for (const step of [-1, 1]) {
    for (let n = number; n >= 1 && n <= state.doc.lines; n += step) {
      const match = lineOf.exec(state.doc.line(n).text);
      if (match === null || state.doc.line(n).text.trim() === "") continue;
      const at = (match[1] ?? "").length + (match[2] ?? "").length;
      if (at < column || (step > 0 && n > number && match[2] !== "" && at === column)) break; // the object is left
      if (at === column && match[4] === "type") return (match[5] ?? "").replace(/\s+#.*$|["']/g, "").trim() || undefined;
      if (step < 0 && at === column && match[2] !== "") break; // its first line
    }
  }
  return undefined;
}

/** The names and items around a column, from the lines above. */
function pathAbove(state: EditorState, number: number, column: number, item: boolean): Path {
  const path: Path = item ? [0] : [];
  let inside = item ? (/^\s*/.exec(state.doc.line(number).text)?.[0].length ?? 0) : column;
  let listed = item;
  for (let n = number - 1; n >= 1 && (inside > 0 || listed); n--) {
    const match = lineOf.exec(state.doc.line(n).text);
    if (match === null || state.doc.line(n).text.trim() === "") continue;
    const dash = (match[1] ?? "").length;
    const at = dash + (match[2] ?? "").length;
    if (match[4] !== undefined && (at < inside || (listed && at === inside && match[2] === "")) && (match[5] ?? "") === "") {
      path.unshift(match[4]);
      inside = at;
      listed = false;
    }
    if (match[2] !== "" && dash < inside && at <= inside && !listed) {
      path.unshift(0);
      inside = dash;
      listed = true;
    }
  }
  return path;
}
