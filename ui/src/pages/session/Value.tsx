import { Status } from "../../parts/Status";
import { When } from "../../parts/When";
import { columnsOf, isObject, nameInWords, shapeOf, timeOf, titleOf } from "./shapes";

type Json = Record<string, unknown>;

/** How deep values in values are drawn; what lies deeper is JSON. */
const deepest = 5;

/** Any JSON, by its shape. Texts are texts, whatever markup is in them. */
export function Value({ value, name = "", depth = 0 }: { value: unknown; name?: string; depth?: number }) {
  if (depth > deepest) return <pre>{JSON.stringify(value, null, 2)}</pre>;
  switch (shapeOf(value)) {
    case "nothing": return <span className="quiet">–</span>;
    case "scalar": return <Scalar value={value} name={name} />;
    case "text": return <p className="session-text">{String(value)}</p>;
    case "words": return <ul className="bullets">{(value as unknown[]).map((v, i) => <li key={i}>{String(v)}</li>)}</ul>;
    case "table": return <Table rows={value as Json[]} />;
    case "timeline": return <Times list={value as Json[]} depth={depth} />;
    case "cards": return <ul className="session-cards">{(value as Json[]).map((o, i) => <li key={i} className="session-part"><Card of={o} depth={depth} /></li>)}</ul>;
    case "pairs": case "parts": return <Pairs of={value as Json} depth={depth} />;
    case "list": return <ol className="session-list">{(value as unknown[]).map((v, i) => <li key={i}><Value value={v} depth={depth + 1} /></li>)}</ol>;
  }
}

function Scalar({ value, name }: { value: unknown; name: string }) {
  if (typeof value === "boolean") return <>{value ? "yes" : "no"}</>;
  if (typeof value === "string" && name.toLowerCase().endsWith("status")) return <Status word={value} />;
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value))) return <When at={value} />;
  return <>{String(value)}</>;
}

function Pairs({ of, depth }: { of: Json; depth: number }) {
  return (
    <dl className="session-pairs">
      {Object.entries(of).filter(([, v]) => shapeOf(v) !== "nothing").map(([name, v]) => (
        <div key={name}><dt>{nameInWords(name)}</dt><dd><Value value={v} name={name} depth={depth + 1} /></dd></div>
      ))}
    </dl>
  );
}

function Table({ rows }: { rows: Json[] }) {
  const columns = columnsOf(rows);
  const numbers = new Set(columns.filter((c) => rows.every((row) => row[c] === undefined || typeof row[c] === "number")));
  const align = (c: string) => (numbers.has(c) ? "number" : undefined);
  return (
    <div className="session-scroll" tabIndex={0} role="group" aria-label="Table">
      <table className="table session-table">
        <thead><tr>{columns.map((c) => <th key={c} scope="col" className={align(c)}>{nameInWords(c)}</th>)}</tr></thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>{columns.map((c) => <td key={c} data-label={nameInWords(c)} className={align(c)}><Value value={row[c]} name={c} /></td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Card({ of, depth }: { of: Json; depth: number }) {
  const title = titleOf(of);
  const rest = Object.fromEntries(Object.entries(of).filter(([name]) => name !== title?.name));
  return (
    <>
      {title === undefined ? null : <h3>{title.text}</h3>}
      {Object.keys(rest).length === 0 ? null : <Pairs of={rest} depth={depth + 1} />}
    </>
  );
}

function Times({ list, depth }: { list: Json[]; depth: number }) {
  return (
    <ol className="session-times">
      {list.map((o, i) => {
        const at = timeOf(o);
        const rest = Object.fromEntries(Object.entries(o).filter(([name]) => name !== at));
        const only = Object.values(rest);
        return (
          <li key={i}>
            <span className="quiet session-time">{at === undefined ? "" : <When at={String(o[at])} />}</span>
            <div>{only.length === 1 && !isObject(only[0]) ? <Value value={only[0]} /> : <Card of={rest} depth={depth} />}</div>
          </li>
        );
      })}
    </ol>
  );
}
