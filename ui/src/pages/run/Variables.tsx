import { Empty } from "../../parts/States";

/** The run's variables, as JSON. */
export function Variables({ variables }: { variables: Record<string, unknown> }) {
  const names = Object.keys(variables).sort();
  return (
    <section className="panel" aria-labelledby="variables">
      <h2 id="variables">Variables <span className="quiet">{names.length}</span></h2>
      {names.length === 0 ? <Empty title="None yet">Variables decide conditions and loops. Agents set them with <code>context</code>.</Empty> : null}
      <dl className="variables">
        {names.map((name) => (
          <div key={name}><dt className="mono">{name}</dt><dd><pre>{JSON.stringify(variables[name], null, 2)}</pre></dd></div>
        ))}
      </dl>
    </section>
  );
}
