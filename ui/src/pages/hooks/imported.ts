import { documentOf, type HookDocument } from "./document";

const key = "guideway-imported-hook";

/** Hands a graph that was read from a file on to the editor. */
export function giveImported(graph: unknown): boolean {
  try {
    sessionStorage.setItem(key, JSON.stringify(graph));
    return true;
  } catch {
    return false;
  }
}

/** Takes the graph that was handed on, once. */
export function takeImported(): HookDocument | undefined {
  try {
    const text = sessionStorage.getItem(key);
    sessionStorage.removeItem(key);
    return text === null ? undefined : documentOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
