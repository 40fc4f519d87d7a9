import { useState } from "react";
import { useUpstreamCommands, type ToolRule, type UpstreamDetails } from "../../api/gateway";
import { Ask } from "../../parts/Ask";
import { Empty, Failed } from "../../parts/States";
import { Status } from "../../parts/Status";

/** The tools of an upstream, each with what is made of it. */
export function UpstreamTools({ upstream, mayManage }: { upstream: UpstreamDetails; mayManage: boolean }) {
  const { setTool } = useUpstreamCommands(upstream.name);
  if (upstream.offered.length === 0) return <Empty title="No tools are known">List its tools to start it and see what it offers.</Empty>;
  const rules = upstream.config.tools ?? {};
  return (
    <>
      {setTool.isError ? <Failed error={setTool.error} doing="change the tool" /> : null}
      <table className="table compact tools" aria-label="Tools">
        <thead><tr><th scope="col">Offered</th><th scope="col">Tool</th><th scope="col">Description</th><th scope="col"><span className="visually-hidden">Change</span></th></tr></thead>
        <tbody>
          {upstream.offered.map((t) => {
            const { hide: _, ...rest } = rules[t.name] ?? {};
            const wanted = setTool.isPending && setTool.variables.tool === t.name ? setTool.variables.hide === true : t.hidden === true;
            return (
              <tr key={t.name}>
                <td data-label="Offered">
                  {t.pending !== undefined && t.hidden !== true ? <span title={t.pending}><Status word="waiting" /></span> : (
                    <label className="check">
                      <input type="checkbox" aria-label={`Offer ${t.name}`} checked={!wanted} disabled={!mayManage || setTool.isPending}
                        onChange={(e) => setTool.mutate({ tool: t.name, base: upstream.base, ...rest, ...(e.target.checked ? {} : { hide: true }) })} />
                      {wanted ? "Hidden" : "Offered"}
                    </label>
                  )}
                </td>
                <td data-label="Tool" data-main className="mono" title={t.fullName ?? t.shown ?? t.name}>{t.shown ?? t.name}</td>
                <td data-label="Description" data-line className="quiet" title={t.description}>{t.description}</td>
                <td data-end><Edit tool={t.name} rule={rules[t.name] ?? {}} mayManage={mayManage} onSet={(name, description) =>
                  setTool.mutate({ ...rules[t.name], name, description, tool: t.name, base: upstream.base })} /></td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </>
  );
}

interface EditProps {
  tool: string;
  rule: ToolRule;
  mayManage: boolean;
  onSet: (name: string, description: string) => void;
}

function Edit({ tool, rule, mayManage, onSet }: EditProps) {
  const [name, setName] = useState(rule.name ?? "");
  const [description, setDescription] = useState(rule.description ?? "");
  return (
    <Ask trigger={<button type="button" className="button button-small" aria-label={`Change ${tool}`} disabled={!mayManage}>Rename…</button>}
      title={`Name and description of ${tool}`} verb="Save" onAgree={() => onSet(name.trim(), description.trim())}>
      <p>An empty field keeps the upstream’s value. Clients are notified of the change.</p>
      <label className="field"><span>Name, after the upstream’s prefix</span><input type="text" value={name} placeholder={tool} onChange={(e) => setName(e.target.value)} /></label>
      <label className="field"><span>Description</span><input type="text" value={description} onChange={(e) => setDescription(e.target.value)} /></label>
    </Ask>
  );
}
