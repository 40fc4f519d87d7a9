import type { Schemas } from "../../api/client";
import "./workflows.css";

interface Props {
  list: Schemas["Diagnostic"][];
  withFile?: boolean;
  /** Goes to the line of a finding. */
  onLine?: (line: number) => void;
}

const shapes: Record<string, string> = { error: "✕", warning: "⚠", info: "·" };

/** Findings in the words and with the codes of guideway validate. */
export function DiagnosticList({ list, withFile = false, onLine }: Props) {
  return (
    <ul className="findings">
      {list.map((d, i) => (
        <li key={i} data-severity={d.severity}>
          <span className="finding-kind"><span aria-hidden="true">{shapes[d.severity] ?? "·"}</span> {d.severity}</span>
          <div>
            <p>{withFile && d.file !== undefined ? <code>{d.file}{d.line === undefined ? "" : `:${d.line}`} </code> : null}{d.message} <code className="quiet">{d.code}</code></p>
            {d.fix === undefined ? null : <p className="quiet">{d.fix}</p>}
          </div>
          {onLine === undefined || d.line === undefined ? null : <button type="button" className="button button-small" onClick={() => onLine(d.line ?? 1)}>Line {d.line}</button>}
        </li>
      ))}
    </ul>
  );
}
