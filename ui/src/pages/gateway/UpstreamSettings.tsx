import { useState } from "react";
import { ApiError } from "../../api/client";
import { useUpstreamCommands, useUpstreamProjects, type UpstreamDetails } from "../../api/gateway";
import { useNotice } from "../../parts/Notice";
import { Failed } from "../../parts/States";

/** How an upstream is configured, to be changed. A change that began from another version is refused. */
export function UpstreamSettings({ upstream, mayManage }: { upstream: UpstreamDetails; mayManage: boolean }) {
  const { change, move } = useUpstreamCommands(upstream.name);
  const projects = useUpstreamProjects();
  const tell = useNotice();
  const [began, setBegan] = useState({ base: upstream.base, text: JSON.stringify(upstream.config, null, 2) });
  const [text, setText] = useState(began.text);
  const [project, setProject] = useState(upstream.project ?? "");
  const config = parse(text);
  const stale = began.base !== upstream.base;
  const untouched = text === began.text;
  const take = () => {
    const now = JSON.stringify(upstream.config, null, 2);
    setBegan({ base: upstream.base, text: now });
    setText(now);
    setProject(upstream.project ?? "");
  };
  const again = () => {
    take();
    change.reset();
    move.reset();
  };
  if (stale && untouched && !change.isPending && !change.isError) take(); // nothing of one's own is lost
  const conflict = change.error instanceof ApiError && change.error.status === 409;
  return (
    <div className="form">
      <form className="form" onSubmit={(e) => { e.preventDefault(); move.mutate({ base: upstream.base, project: project.trim() }, { onSuccess: () => tell({ text: project.trim() === "" ? "It is in no project." : `It is in the project ${project.trim()}.` }) }); }}>
        <label className="field"><span>Project</span>
          <input type="text" list="projects" value={project} disabled={!mayManage} onChange={(e) => setProject(e.target.value)} placeholder="None" />
        </label>
        <datalist id="projects">{(projects.data?.projects ?? []).map((p) => <option key={p.name} value={p.name} />)}</datalist>
        {move.isError ? <Failed error={move.error} doing="move it" /> : null}
        <div className="actions"><button type="submit" className="button" disabled={!mayManage || move.isPending || project.trim() === (upstream.project ?? "")}>Save the project</button></div>
      </form>
      <form className="form" onSubmit={(e) => { e.preventDefault(); if (config !== undefined) change.mutate({ base: began.base, config }, { onSuccess: () => tell({ text: `${upstream.name} is changed. The change is in effect.` }) }); }}>
        <label className="field"><span>Configuration, as guideway.json has it</span>
          <textarea className="tall" spellCheck={false} value={text} disabled={!mayManage} onChange={(e) => setText(e.target.value)} />
        </label>
        <p className="quiet prose">Secrets are <code>(hidden)</code> and keep their values. Refer to a new one as <code>{"${env:NAME}"}</code> or <code>{"${keychain:NAME}"}</code>.</p>
        {config === undefined ? <p role="alert">This is not a JSON object yet.</p> : null}
        {stale && !untouched ? <p role="alert">This upstream has changed since you opened it. Your edit is still here, but it cannot overwrite that change.</p> : null}
        {change.isError ? <Failed error={change.error} doing="change it" /> : null}
        <div className="actions">
          <button type="submit" className="button button-main" disabled={!mayManage || config === undefined || change.isPending || untouched}>Save the configuration</button>
          {stale || conflict ? <button type="button" className="button" onClick={again}>Load the current version</button> : null}
        </div>
      </form>
    </div>
  );
}

function parse(text: string): UpstreamDetails["config"] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as UpstreamDetails["config"]) : undefined;
  } catch {
    return undefined;
  }
}
