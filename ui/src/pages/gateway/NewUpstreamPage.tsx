import { useState } from "react";
import { Link, useLocation } from "wouter";
import type { Schemas } from "../../api/client";
import { useAddUpstream, useImport } from "../../api/gateway";
import { useMay } from "../../api/reads";
import { useNotice } from "../../parts/Notice";
import { Failed } from "../../parts/States";
import { Tabs } from "../../parts/Tabs";
import { useTitle } from "../../parts/title";
import "../../parts/table.css";
import "./gateway.css";

/** Adds upstreams: by pasting what another client is configured with, or by a form. */
export function NewUpstreamPage() {
  useTitle("Add upstream");
  return (
    <section className="section">
      <h1>Add upstream</h1>
      <p className="quiet prose">A server that Guideway starts runs with your rights. Add only servers that you trust like a program that you install.</p>
      <Tabs label="How to add" tabs={[{ id: "paste", name: "Paste", body: <Paste /> }, { id: "form", name: "Form", body: <Form /> }]} />
    </section>
  );
}

function Paste() {
  const may = useMay("manage");
  const [, go] = useLocation();
  const [text, setText] = useState("");
  const [left, setLeft] = useState<Set<string>>(new Set());
  const look = useImport();
  const take = useImport();
  const tell = useNotice();
  const found = look.data?.found ?? [];
  const chosen = found.filter((f) => f.taken && !left.has(f.name)).map((f) => f.name);
  return (
    <div className="form">
      <form className="form" onSubmit={(e) => { e.preventDefault(); setLeft(new Set()); take.reset(); look.mutate({ text, look: true }); }}>
        <label className="field"><span>Configuration of Claude, Cursor, VS Code, Windsurf or Codex, or a server entry from a README</span>
          <textarea spellCheck={false} value={text} onChange={(e) => { setText(e.target.value); look.reset(); }} placeholder={'{"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"]}}}'} />
        </label>
        <div className="actions"><button type="submit" className="button" disabled={!may || text.trim() === "" || look.isPending}>Find its servers</button></div>
      </form>
      {look.isError ? <Failed error={look.error} doing="read it" /> : null}
      {found.length === 0 ? null : (
        <>
          <ul className="change-tools" aria-label="Servers found">
            {found.map((f) => <Found key={`${f.name} ${f.where}`} found={f} chosen={chosen.includes(f.name)} onChoose={(on) => setLeft((now) => {
              const next = new Set(now);
              if (on) next.delete(f.name);
              else next.add(f.name);
              return next;
            })} />)}
          </ul>
          {take.isError ? <Failed error={take.error} doing="add them" /> : null}
          <div className="actions">
            <button type="button" className="button button-main" disabled={!may || chosen.length === 0 || take.isPending} onClick={() => take.mutate({ text, chosen }, { onSuccess: () => {
              tell({ text: chosen.length === 1 ? `Added: ${chosen[0] ?? ""}` : `Added: ${chosen.length} upstreams` });
              go(chosen.length === 1 ? `/gateway/${encodeURIComponent(chosen[0] ?? "")}` : "/gateway");
            } })}>{chosen.length === 1 ? "Add 1 upstream" : `Add ${chosen.length} upstreams`}</button>
            <Link href="/gateway" className="button">Cancel</Link>
          </div>
        </>
      )}
    </div>
  );
}

function Found({ found, chosen, onChoose }: { found: Schemas["ImportAnswer"]["found"][number]; chosen: boolean; onChoose: (on: boolean) => void }) {
  return (
    <li className="card">
      <label className="check"><input type="checkbox" checked={chosen} disabled={!found.taken} onChange={(e) => onChoose(e.target.checked)} /> <strong>{found.name}</strong></label>
      <p className="quiet mono">{found.where}</p>
      {found.notes.length === 0 ? null : <ul className="notes">{found.notes.map((n) => <li key={n}>{n}</li>)}</ul>}
    </li>
  );
}

/** Lines of NAME=value as an object. */
function pairs(text: string): Record<string, string> {
  return Object.fromEntries(text.split("\n").map((l) => l.trim()).filter((l) => l !== "").map((l) => {
    const at = l.indexOf("=");
    return at < 0 ? [l, ""] : [l.slice(0, at).trim(), l.slice(at + 1).trim()];
  }));
}

function Form() {
  const may = useMay("manage");
  const [, go] = useLocation();
  const add = useAddUpstream();
  const [kind, setKind] = useState<"command" | "url">("command");
  const [f, setF] = useState({ name: "", command: "", args: "", env: "", url: "", headers: "", bearer: "", project: "", approve: false });
  const set = (key: keyof typeof f) => (e: { target: { value: string } }) => setF((now) => ({ ...now, [key]: e.target.value }));
  const some = (record: Record<string, string>) => (Object.keys(record).length === 0 ? undefined : record);
  const send = () => {
    const args = f.args.split("\n").map((l) => l.trim()).filter((l) => l !== "");
    const env = some(pairs(f.env));
    const headers = some(pairs(f.headers));
    const way: Schemas["UpstreamConfig"] = kind === "command"
      ? { command: f.command.trim(), ...(args.length === 0 ? {} : { args }), ...(env === undefined ? {} : { env }) }
      : { url: f.url.trim(), ...(headers === undefined ? {} : { headers }), ...(f.bearer.trim() === "" ? {} : { bearer: f.bearer.trim() }) };
    const config = { ...way, ...(f.project.trim() === "" ? {} : { project: f.project.trim() }), ...(f.approve ? { pins: "approve" } : {}) };
    add.mutate({ name: f.name.trim(), config }, { onSuccess: () => go(`/gateway/${encodeURIComponent(f.name.trim())}`) });
  };
  return (
    <form className="form" onSubmit={(e) => { e.preventDefault(); send(); }}>
      <label className="field"><span>Name; its tools are named NAME__tool</span><input type="text" required maxLength={40} value={f.name} onChange={set("name")} placeholder="files" /></label>
      <fieldset>
        <legend>Connection</legend>
        <div className="checks">
          <label className="check"><input type="radio" name="kind" checked={kind === "command"} onChange={() => setKind("command")} /> a command on this machine</label>
          <label className="check"><input type="radio" name="kind" checked={kind === "url"} onChange={() => setKind("url")} /> an address</label>
        </div>
      </fieldset>
      {kind === "command" ? (
        <>
          <label className="field"><span>Command</span><input type="text" required value={f.command} onChange={set("command")} placeholder="npx" /></label>
          <label className="field"><span>Arguments, one per line</span><textarea spellCheck={false} value={f.args} onChange={set("args")} placeholder={"-y\n@modelcontextprotocol/server-filesystem\n/home/me"} /></label>
          <label className="field"><span>Environment variables, NAME=value, one per line</span><textarea spellCheck={false} value={f.env} onChange={set("env")} placeholder="API_KEY=${keychain:files}" /></label>
        </>
      ) : (
        <>
          <label className="field"><span>Address</span><input type="text" required value={f.url} onChange={set("url")} placeholder="https://example.com/mcp" /></label>
          <label className="field"><span>Bearer token (optional)</span><input type="text" value={f.bearer} onChange={set("bearer")} placeholder="${keychain:docs}" autoComplete="off" /></label>
          <label className="field"><span>Headers, NAME=value, one per line</span><textarea spellCheck={false} value={f.headers} onChange={set("headers")} /></label>
        </>
      )}
      <label className="field"><span>Project (optional)</span><input type="text" maxLength={64} value={f.project} onChange={set("project")} /></label>
      <label className="check"><input type="checkbox" checked={f.approve} onChange={(e) => setF((now) => ({ ...now, approve: e.target.checked }))} /> Hide every tool until I approve it</label>
      {add.isError ? <Failed error={add.error} doing="add it" /> : null}
      <div className="actions"><button type="submit" className="button button-main" disabled={!may || add.isPending}>Add upstream</button><Link href="/gateway" className="button">Cancel</Link></div>
    </form>
  );
}
