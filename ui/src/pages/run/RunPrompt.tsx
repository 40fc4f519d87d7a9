import type { Schemas } from "../../api/client";

/** What the agent is told, and what its output must meet. */
export function RunPrompt({ position, open }: { position: Schemas["Position"]; open: boolean }) {
  const prompt = position.prompt === position.title ? undefined : position.prompt;
  if (prompt === undefined && position.criteria === undefined) return null;
  return (
    <details open={open}>
      <summary className="quiet">{position.criteria === undefined ? "Prompt" : `Prompt and ${position.criteria.length === 1 ? "1 criterion" : `${position.criteria.length} criteria`}`}</summary>
      {prompt === undefined ? null : <pre className="run-prompt">{prompt}</pre>}
      <Words title="Criteria" list={position.criteria} />
    </details>
  );
}

/** A list of texts with a title. */
export function Words({ title, list }: { title: string; list: string[] | undefined }) {
  if (list === undefined || list.length === 0) return null;
  return (
    <div>
      <h3>{title}</h3>
      <ul className="bullets">{list.map((text) => <li key={text}>{text}</li>)}</ul>
    </div>
  );
}
