import type { Schemas } from "../../api/client";
import { useRunContext } from "../../api/reads";
import { bytes } from "../../parts/sizes";
import { Empty, Failed, Skeleton } from "../../parts/States";

/** The run's variables by what they are worth, with the size of each. */
export function RunContext({ runId }: { runId: string }) {
  const context = useRunContext(runId);
  if (context.isPending) return <Skeleton />;
  if (context.isError) return <Failed error={context.error} doing="read the context" retry={() => void context.refetch()} />;
  const { layers, items, tokens, bytes: size, summary, limitTokens } = context.data;
  if (items.length === 0) return <Empty title="No variables yet">Variables decide conditions and loops. Agents set them with <code>context</code>.</Empty>;
  return (
    <div className="context">
      <p className="quiet">
        {items.length === 1 ? "1 variable" : `${items.length} variables`} · {tokens.toLocaleString()} tokens{limitTokens > 0 ? ` of ${limitTokens.toLocaleString()}` : ""} · {bytes(size)}
      </p>
      <Layers layers={layers} tokens={tokens} />
      {summary === undefined ? null : <details><summary>Summary of {summary.steps} steps</summary><p className="prose context-summary">{summary.text}</p></details>}
      {layers.filter((l) => l.items > 0).map((l) => (
        <section key={l.layer} aria-labelledby={`layer-${l.layer}`}>
          <h3 id={`layer-${l.layer}`} className="layer-name" data-layer={l.layer}>{word(l.layer)} <span className="quiet">{l.tokens.toLocaleString()} tokens</span></h3>
          <ul>{items.filter((i) => i.layer === l.layer).map((i) => <Item key={i.key} item={i} />)}</ul>
        </section>
      ))}
    </div>
  );
}

type Layer = Schemas["RunContext"]["layers"][number];

function Layers({ layers, tokens }: { layers: Layer[]; tokens: number }) {
  const words = layers.filter((l) => l.tokens > 0).map((l) => `${l.layer} ${l.tokens}`).join(", ");
  return (
    <div className="layers" role="img" aria-label={`Tokens by layer: ${words}`}>
      {layers.filter((l) => l.tokens > 0).map((l) => <span key={l.layer} data-layer={l.layer} style={{ flexGrow: l.tokens / Math.max(1, tokens) }} />)}
    </div>
  );
}

function Item({ item }: { item: Schemas["RunContext"]["items"][number] }) {
  return (
    <li>
      <details className="item">
        <summary>
          <span className="mono item-key">{item.key}</span>
          <span className="item-value mono quiet">{short(item.value)}</span>
          <span className="number quiet">{item.tokens.toLocaleString()} tokens</span>
        </summary>
        <div className="item-more">
          <p className="quiet">{item.why} · {bytes(item.bytes)} · {item.age === 0 ? "changed at the last step" : item.age === 1 ? "unchanged for 1 step" : `unchanged for ${item.age} steps`}{item.tags === undefined ? "" : ` · ${item.tags.join(", ")}`}</p>
          <pre>{typeof item.value === "string" ? item.value : JSON.stringify(item.value, null, 2)}{item.cut === true ? " …" : ""}</pre>
        </div>
      </details>
    </li>
  );
}

function word(layer: string): string {
  return layer.charAt(0).toUpperCase() + layer.slice(1);
}

function short(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
