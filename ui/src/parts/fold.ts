/** The size up to which a text under approval is shown without a click. */
const most = { lines: 24, characters: 3_000 };

/** A long text, with what a click shows. */
export interface Folded {
  head: string;
  /** Names the rest, or is empty if the head is the whole text. */
  rest: string;
}

/** Returns the beginning of a long text, and the whole of a short one. */
export function foldText(text: string): Folded {
  const lines = text.split("\n");
  const head = lines.slice(0, most.lines).join("\n").slice(0, most.characters);
  if (head.length === text.length) return { head, rest: "" };
  const hidden = lines.length - head.split("\n").length;
  if (hidden > 0) return { head, rest: hidden === 1 ? "1 more line" : `${hidden} more lines` };
  const characters = text.length - head.length;
  return { head, rest: characters === 1 ? "1 more character" : `${characters.toLocaleString("en")} more characters` };
}
