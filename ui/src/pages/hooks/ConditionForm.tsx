import { isObject, list, text, type Json } from "../../graph/json";
import { readJSON } from "./written";

const operators: Record<string, string> = { "==": "is", "!=": "is not", ">": "is greater than", "<": "is less than", ">=": "is at least", "<=": "is at most", exists: "exists", notExists: "does not exist" };
const simple: Json = { type: "simple", variable: "request.params.name", operator: "==", value: "" };
const deepest = 4;

/** What conditions mostly read. */
const paths = [
  "request.params.name", "request.params.arguments.path", "response.isError", "metadata.clientId", "metadata.serverName", "variables.",
];

interface Props {
  label: string;
  condition: unknown;
  depth?: number;
  onChange: (condition: Json) => void;
}

/** Edits a condition: a comparison, or others that are joined. */
export function ConditionForm({ label, condition, depth = 0, onChange }: Props) {
  const now = isObject(condition) ? condition : simple;
  const type = text(now["type"]) || "simple";
  const parts = type === "not" ? [now["condition"]] : list(now["conditions"]);
  const joined = (next: Json[]) => onChange({ type, conditions: next });
  return (
    <fieldset className="condition">
      <legend>{label}</legend>
      <select aria-label={`${label}: type of condition`} value={type} onChange={(e) => onChange(changed(now, e.target.value))}>
        <option value="simple">compares a value</option>
        {depth >= deepest ? null : <><option value="and">all of these hold</option><option value="or">one of these holds</option><option value="not">this does not hold</option></>}
      </select>
      {type === "simple" ? <Comparison label={label} now={now} onChange={onChange} /> : parts.map((part, i) => (
        <div key={i} className="condition-part">
          <ConditionForm label={`${label}.${i + 1}`} condition={part} depth={depth + 1} onChange={(c) => (type === "not" ? onChange({ type, condition: c }) : joined(parts.map((p, j) => (j === i ? c : p)) as Json[]))} />
          {type !== "not" && parts.length > 2 ? <button type="button" className="button button-small" onClick={() => joined(parts.filter((_, j) => j !== i) as Json[])}>Remove</button> : null}
        </div>
      ))}
      {type === "and" || type === "or" ? <button type="button" className="button button-small" onClick={() => joined([...(parts as Json[]), simple])}>Add a condition</button> : null}
    </fieldset>
  );
}

/** The same condition as another type, with what it had. */
function changed(now: Json, type: string): Json {
  const parts = now["type"] === "not" && isObject(now["condition"]) ? [now["condition"]] : list(now["conditions"]);
  const first = now["type"] === "simple" ? now : (parts[0] ?? simple);
  if (type === "simple") return first["type"] === "simple" ? first : simple;
  if (type === "not") return { type, condition: first };
  return { type, conditions: parts.length > 1 ? parts : [first, simple] };
}

function Comparison({ label, now, onChange }: { label: string; now: Json; onChange: (c: Json) => void }) {
  const operator = text(now["operator"]);
  const compares = operator !== "exists" && operator !== "notExists";
  const set = (members: Json) => onChange(Object.fromEntries(Object.entries({ ...now, ...members }).filter(([, v]) => v !== undefined)));
  return (
    <div className="comparison">
      <input type="text" aria-label={`${label}: value to test`} list="condition-paths" value={text(now["variable"])} onChange={(e) => set({ variable: e.target.value })} spellCheck={false} />
      <datalist id="condition-paths">{paths.map((p) => <option key={p} value={p} />)}</datalist>
      <select aria-label={`${label}: operator`} value={operator} onChange={(e) => set({ operator: e.target.value, value: e.target.value.toLowerCase().endsWith("exists") ? undefined : (now["value"] ?? "") })}>
        {Object.entries(operators).map(([value, words]) => <option key={value} value={value}>{words}</option>)}
      </select>
      {compares ? <input type="text" aria-label={`${label}: compared with`} value={shown(now["value"])} onChange={(e) => set({ value: meant(e.target.value) })} spellCheck={false} /> : null}
    </div>
  );
}

/** A value as a person writes it: texts need no quotes, unless they read as something else. */
function shown(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "";
  return typeof meant(value) === "string" ? value : JSON.stringify(value);
}

function meant(written: string): unknown {
  const read = readJSON(written);
  return "problem" in read || (typeof read.value === "object" && read.value !== null) ? written : read.value;
}
