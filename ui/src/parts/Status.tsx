import "./status.css";

/** The words of status that have a colour and a shape of their own. */
export type StatusWord = "running" | "waiting" | "done" | "skipped" | "refused" | "failed";

const shapes: Record<StatusWord, string> = {
  running: "▶", waiting: "⬣", done: "✓", skipped: "⤳", refused: "⊘", failed: "✕",
};

const synonyms: Record<string, StatusWord> = {
  completed: "done", complete: "done", aborted: "failed", blocked: "failed", error: "failed", in_progress: "running", paused: "waiting",
  wrong: "failed", disabled: "skipped", elsewhere: "skipped", expired: "skipped", "active": "done",
  passed: "done", approved: "running", denied: "refused", used: "done", "not finished": "failed", "not defined": "skipped",
};

/** A status by colour, shape and word. Unknown words have the word alone. */
export function Status({ word }: { word: string }) {
  const kind = word in shapes ? (word as StatusWord) : synonyms[word];
  return (
    <span className="status" data-kind={kind}>
      <span aria-hidden="true">{kind === undefined ? "·" : shapes[kind]}</span> {word.replaceAll("_", " ")}
    </span>
  );
}
