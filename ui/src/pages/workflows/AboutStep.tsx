import { useMemo } from "react";
import { conditionWords } from "../../graph/conditions";
import { isObject, text, type Json } from "../../graph/json";
import { Empty } from "../../parts/States";

/** What the definition says of the chosen node. */
export function AboutStep({ definition, chosen }: { definition: unknown; chosen: string | undefined }) {
  const step = useMemo(() => (chosen === undefined ? undefined : find(definition, chosen)), [definition, chosen]);
  if (step === undefined) return <Empty title="No step is selected">Select a step in the graph to read its prompt and criteria.</Empty>;
  const prompt = text(step["prompt"]) || text(step["message"]) || text(step["description"]);
  const shown = new Set(["id", "title", "name", "prompt", "message", "description", "runCondition", "steps", "body", "checkpoints", "decisions", "transitions", "loops"]);
  const rest = Object.entries(step).filter(([name]) => !shown.has(name));
  const when = conditionWords(step["runCondition"]);
  return (
    <div className="about-step">
      <h2>{text(step["title"]) || text(step["name"]) || chosen} <span className="mono quiet">{chosen}</span></h2>
      {when === undefined ? null : <p>Applies if <strong>{when}</strong>.</p>}
      {prompt === "" ? null : <pre className="about-prompt">{prompt}</pre>}
      {rest.map(([name, value]) => (
        <section key={name}><h3>{name}</h3><pre>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre></section>
      ))}
    </div>
  );
}

/** The first object with an id, the outer ones first. */
function find(value: unknown, id: string): Json | undefined {
  const waiting: unknown[] = [value];
  for (let i = 0; i < waiting.length; i++) {
    const v = waiting[i];
    if (Array.isArray(v)) waiting.push(...v);
    else if (isObject(v)) {
      if (i > 0 && v["id"] === id) return v;
      waiting.push(...Object.values(v).filter((m) => typeof m === "object"));
    }
  }
  return undefined;
}
