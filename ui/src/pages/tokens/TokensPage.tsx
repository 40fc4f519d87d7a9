import { useState } from "react";
import { Link } from "wouter";
import type { Schemas } from "../../api/client";
import { useMakeToken, useRevokeToken, useTokens, useUpstreams } from "../../api/gateway";
import { useMe } from "../../api/reads";
import { Ask } from "../../parts/Ask";
import { useNotice } from "../../parts/Notice";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import "../../parts/table.css";
import "../gateway/gateway.css";

type Token = Schemas["Token"];

const toolsets = ["steps", "runs", "sessions", "context", "phases", "machines"];

/** Tokens of clients: what each may use, until when, and when it was used. */
export function TokensPage() {
  useTitle("Tokens");
  const tokens = useTokens();
  return (
    <>
      <section className="section">
        <div className="section-head"><h1>Tokens</h1><Link href="/gateway">Gateway</Link></div>
        <p className="quiet prose">A token gives one client access to <code>/mcp</code>, limited to what you select here. If you revoke it, its sessions end within seconds.</p>
        {tokens.isPending ? <Skeleton rows={4} /> : null}
        {tokens.isError ? <Failed error={tokens.error} doing="read the tokens" retry={() => void tokens.refetch()} /> : null}
        {tokens.isSuccess && tokens.data.tokens.length === 0 ? <Empty title="No named tokens yet">Clients use the token of the token file, which allows everything. Create one for a client that should have less access.</Empty> : null}
        {tokens.isSuccess && tokens.data.tokens.length > 0 ? <TokenTable list={tokens.data.tokens} /> : null}
      </section>
      {tokens.isSuccess ? <NewToken /> : null}
    </>
  );
}

/** What a token may use, in words. */
function mayUse({ scopes, allow }: Token): string {
  if (!scopes.includes("mcp")) return scopes.includes("approve") ? "reads, and answers gates as you" : scopes.includes("manage") ? "reads, and changes upstreams" : "reads";
  if (allow?.all === true) return "everything";
  const parts = ([["upstreams", allow?.upstreams], ["projects", allow?.projects], ["tools", allow?.tools], ["toolsets", allow?.toolsets]] as const)
    .filter(([, list]) => (list ?? []).length > 0).map(([what, list]) => `${what} ${(list ?? []).join(", ")}`);
  return parts.length === 0 ? "nothing" : parts.join("; ");
}

function TokenTable({ list }: { list: Token[] }) {
  const revoke = useRevokeToken();
  const me = useMe().data?.user;
  const tell = useNotice();
  return (
    <>
      {revoke.isError ? <Failed error={revoke.error} doing="revoke the token" /> : null}
      <table className="table compact tokens" aria-label="Tokens">
        <thead><tr><th scope="col">Name</th><th scope="col">State</th><th scope="col">Scope</th><th scope="col">May use</th><th scope="col">Used</th><th scope="col">Ends</th><th scope="col"><span className="visually-hidden">Revoke or remove</span></th></tr></thead>
        <tbody>
          {[...list].sort((a, b) => Number(a.expired) - Number(b.expired)).map((t) => (
            <tr key={`${t.user}/${t.name}`} data-expired={t.expired || undefined}>
              <td data-label="Name" data-main>{t.name}{me === undefined || t.user === me ? null : <span className="quiet"> ({t.user})</span>}</td>
              <td data-label="State"><Status word={t.expired ? "expired" : "active"} /></td>
              <td data-label="Scope">{t.scopes.join(", ")}</td>
              <td data-label="May use" data-line className="quiet" title={mayUse(t)}>{mayUse(t)}</td>
              <td data-label="Used" data-named>{t.usedAt === undefined ? <span className="quiet">never</span> : <When at={t.usedAt} />}</td>
              <td data-label={t.expired ? "Ended" : "Ends"} data-named>{t.expiresAt === undefined ? <span className="quiet">never</span> : <time dateTime={t.expiresAt} title={new Date(t.expiresAt).toLocaleString()}>{new Date(t.expiresAt).toLocaleDateString(undefined, { dateStyle: "medium" })}</time>}</td>
              <td data-end>
                <Ask trigger={<button type="button" className="button button-small" aria-label={`${t.expired ? "Remove" : "Revoke"} ${t.name}`}>{t.expired ? "Remove" : "Revoke"}</button>}
                  title={t.expired ? `Remove ${t.name}?` : `Revoke ${t.name}?`} verb={t.expired ? "Remove the token" : "Revoke the token"}
                  onAgree={() => revoke.mutate({ name: t.name, user: t.user }, { onSuccess: () => tell({ text: `${t.expired ? "Removed" : "Revoked"}: ${t.name}` }) })}>
                  <p>{t.expired ? "It no longer gives access. Its name becomes available." : "Its clients lose access, and their open sessions end. This cannot be undone."}</p>
                </Ask>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function NewToken() {
  const upstreams = useUpstreams();
  const make = useMakeToken();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<Record<string, boolean>>({});
  const [tools, setTools] = useState("");
  const [days, setDays] = useState("30");
  const names = (upstreams.data?.upstreams ?? []).map((u) => u.name);
  const projects = [...new Set((upstreams.data?.upstreams ?? []).map((u) => u.project ?? ""))].filter((p) => p !== "").sort();
  const picked = (kind: string, from: string[]) => from.filter((n) => chosen[`${kind} ${n}`] === true);
  const patterns = tools.split(/[\s,]+/).filter((t) => t !== "");
  const allow: Schemas["TokenAllow"] = {
    upstreams: picked("upstream", names), projects: picked("project", projects), toolsets: picked("toolset", toolsets), tools: patterns,
  };
  const nothing = Object.values(allow).every((list) => Array.isArray(list) && list.length === 0);
  const send = () => make.mutate({
    name: name.trim(), scope: "mcp", allow,
    ...(days === "" ? {} : { expiresAt: new Date(Date.now() + Number(days) * 86_400_000).toISOString() }),
  }, { onSuccess: () => { setName(""); setChosen({}); setTools(""); } });
  const check = (kind: string) => (n: string) => (
    <label key={n} className="check"><input type="checkbox" checked={chosen[`${kind} ${n}`] === true} onChange={(e) => setChosen((now) => ({ ...now, [`${kind} ${n}`]: e.target.checked }))} /> {n}</label>
  );
  return (
    <section className="section" aria-labelledby="new-token">
      <h2 id="new-token">New token for a client</h2>
      {make.data === undefined ? null : <Secret made={make.data} onClose={() => make.reset()} />}
      <form className="form" onSubmit={(e) => { e.preventDefault(); send(); }}>
        <label className="field"><span>Name of the client</span><input type="text" required maxLength={64} pattern="[a-zA-Z0-9][a-zA-Z0-9._\-]*" value={name} onChange={(e) => setName(e.target.value)} placeholder="laptop" /></label>
        {names.length === 0 ? null : <fieldset><legend>Upstreams</legend><div className="checks">{names.map(check("upstream"))}</div></fieldset>}
        {projects.length === 0 ? null : <fieldset><legend>Projects</legend><div className="checks">{projects.map(check("project"))}</div></fieldset>}
        <fieldset><legend>Guideway’s own toolsets</legend><div className="checks">{toolsets.map(check("toolset"))}</div></fieldset>
        <label className="field"><span>Single tools, such as github__get_*</span><input type="text" value={tools} onChange={(e) => setTools(e.target.value)} /></label>
        <label className="field"><span>Expires after</span>
          <select value={days} onChange={(e) => setDays(e.target.value)}>
            <option value="1">a day</option><option value="7">a week</option><option value="30">30 days</option><option value="365">a year</option><option value="">never</option>
          </select>
        </label>
        {nothing && name !== "" ? <p className="quiet">It may use nothing yet: select something.</p> : null}
        {make.isError ? <Failed error={make.error} doing="create the token" /> : null}
        <div className="actions"><button type="submit" className="button button-main" disabled={make.isPending || nothing}>Create token</button></div>
      </form>
      <p className="quiet prose">Tokens that answer gates or change upstreams act as you: create them at a terminal with <code>guideway token create NAME --scope approve</code> or <code>--scope manage</code>.</p>
    </section>
  );
}

function Secret({ made, onClose }: { made: Schemas["MadeToken"]; onClose: () => void }) {
  const tell = useNotice();
  const copy = () => void navigator.clipboard.writeText(made.secret).then(() => tell({ text: "Copied" }), () => tell({ text: "Could not copy: select it and copy it manually", failed: true }));
  return (
    <div className="change-tool" role="status">
      <h3>The token of {made.token.name}, shown once</h3>
      <p className="secret"><code aria-label="Token">{made.secret}</code><button type="button" className="button" onClick={copy}>Copy</button><button type="button" className="button" onClick={onClose}>Close</button></p>
      <p className="quiet prose">The client sends it as <code>Authorization: Bearer TOKEN</code>, or <code>guideway connect</code> takes it from <code>GUIDEWAY_TOKEN</code>.</p>
    </div>
  );
}
