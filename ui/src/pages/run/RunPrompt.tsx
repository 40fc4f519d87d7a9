import type { Schemas } from "../../api/client";

/** What the agent is told, what Guideway checks, and what the agent only claims. */
export function RunPrompt({ position, open }: { position: Schemas["Position"]; open: boolean }) {
  const prompt = position.prompt === position.title ? undefined : position.prompt;
  if (prompt === undefined && position.criteria === undefined) return null;
  const { criteria = [], checkedCriteria = [] } = position;
  const checked = criteria.filter((_, i) => checkedCriteria.includes(i));
  const claimed = criteria.filter((_, i) => !checkedCriteria.includes(i));
  return (
    <details open={open}>
      <summary className="quiet">{criteria.length === 0 ? "Prompt" : `Prompt and ${criteria.length === 1 ? "1 criterion" : `${criteria.length} criteria`}${checked.length === 0 ? "" : `, ${checked.length} checked by Guideway`}`}</summary>
      {prompt === undefined ? null : <pre className="run-prompt">{prompt}</pre>}
      <Words title="Guideway checks for itself" list={checked} />
      <Words title="The agent claims" list={claimed} />
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
