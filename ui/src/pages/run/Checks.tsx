import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { bytes, duration } from "../../parts/sizes";
import { Status } from "../../parts/Status";
import { commandLine, outcomeOf, type ShownCheck } from "./evidence";
import "./evidence.css";

/** The checks that Guideway executed for an output, with their results. */
export function Checks({ list, isImported = false }: { list: ShownCheck[]; isImported?: boolean }) {
  if (list.length === 0) return null;
  return (
    <div className="checks">
      <h3>{isImported ? "Checks, according to the bundle" : "Checks by Guideway"}</h3>
      <ul>{list.map((check, i) => <li key={i}><Check check={check} /></li>)}</ul>
    </div>
  );
}

/** A check with its result. The command, the workspace and the output are folded. */
export function Check({ check, isOpen = false }: { check: ShownCheck; isOpen?: boolean }) {
  const outcome = outcomeOf(check);
  const wasExecuted = outcome !== "not defined";
  return (
    <details className="check-result" open={isOpen}>
      <summary>
        <Status word={outcome} /> · <span className="check-words">{check.describe}</span>
        {wasExecuted ? <span className="quiet number">{check.exitCode === undefined ? "" : `exit code ${check.exitCode} · `}{duration(check.durationMs)}</span> : null}
        {check.issue === undefined || check.issue === "" ? null : <span className="check-issue">{check.issue}</span>}
      </summary>
      <div className="check-more">
        {wasExecuted ? <Facts check={check} /> : <p className="quiet">The project does not define this check, so it was not executed.</p>}
        <CheckOutput check={check} />
      </div>
    </details>
  );
}

function Facts({ check }: { check: ShownCheck }) {
  const { argv, dir, exitCode, workspace } = check;
  const facts: [string, ReactNode][] = [];
  const add = (name: string, value: ReactNode) => {
    if (value !== undefined && value !== "") facts.push([name, value]);
  };
  if (argv !== undefined && argv.length > 0) {
    add("Command", <code>{commandLine(argv)}</code>);
    add("Exit code", exitCode ?? "none: the command did not end by itself");
  }
  add("Duration", duration(check.durationMs));
  add("Directory", where(workspace, dir));
  add("Commit", workspace?.commit === undefined ? undefined : <code>{workspace.commit}</code>);
  if (workspace?.commit !== undefined) add("Changed files", <ChangedFiles workspace={workspace} />);
  add("Server", check.instance);
  add("Execution", notesOn(check));
  return <dl className="check-facts">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

function where(workspace: Schemas["Workspace"] | undefined, dir = ""): ReactNode {
  const path = dir === "" ? workspace?.root ?? "" : dir;
  if (path === "") return undefined;
  return <><code>{path}</code>{workspace?.host === undefined ? "" : ` on ${workspace.host}`}</>;
}

function notesOn({ sandboxed, reused, killed = 0 }: ShownCheck): string {
  const notes = [
    sandboxed === true ? "in a sandbox" : "",
    reused === true ? "the result of an earlier execution for the same files" : "",
    killed === 0 ? "" : killed === 1 ? "1 process outlived the command and was killed" : `${killed} processes outlived the command and were killed`,
  ];
  return notes.filter((n) => n !== "").join("; ");
}

function ChangedFiles({ workspace: { dirty = [], dirtyCount = dirty.length } }: { workspace: Schemas["Workspace"] }) {
  if (dirtyCount === 0) return "none: the files are those of the commit";
  const more = dirtyCount - dirty.length;
  return (
    <details>
      <summary>{dirtyCount === 1 ? "1 file differs" : `${dirtyCount.toLocaleString()} files differ`} from the commit</summary>
      <ul className="bullets">{dirty.map((path) => <li key={path}><code>{path}</code></li>)}{more > 0 ? <li className="quiet">and {more.toLocaleString()} more</li> : null}</ul>
    </details>
  );
}

/** The beginning and the end of the output. Only the end of it is known at a gate. */
function CheckOutput({ check: { head = "", tail = "", outputBytes } }: { check: ShownCheck }) {
  if (head === "" && tail === "") return outputBytes === 0 ? <p className="quiet">The output is empty.</p> : null;
  return (
    <details>
      <summary>Output{outputBytes === undefined ? "" : `, ${bytes(outputBytes)}`}</summary>
      {head === "" ? null : <pre tabIndex={0} role="region" aria-label={tail === "" ? "The output" : "The beginning of the output"}>{head}</pre>}
      {head === "" || tail === "" ? null : <p className="quiet">… the middle of the output is not kept …</p>}
      {tail === "" ? null : <pre tabIndex={0} role="region" aria-label="The end of the output">{tail}</pre>}
    </details>
  );
}
