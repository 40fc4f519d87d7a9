import { useState } from "react";
import { Link, useLocation } from "wouter";
import { ApiError } from "../../api/client";
import { useUpstream, useUpstreamCommands, useUpstreamLog, type UpstreamDetails } from "../../api/gateway";
import { useMe } from "../../api/reads";
import { Ask } from "../../parts/Ask";
import { Empty, Failed, Missing, Skeleton } from "../../parts/States";
import { Tabs } from "../../parts/Tabs";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import "../../parts/table.css";
import { Answered } from "./GatewayPage";
import { stateWords, UpstreamState } from "./UpstreamState";
import { UpstreamSettings } from "./UpstreamSettings";
import { UpstreamTools } from "./UpstreamTools";
import { WaitingTools } from "./WaitingTools";
import "./gateway.css";

/** One upstream: what of it waits, what it offers, how it is configured, what it says. */
export function UpstreamPage({ id }: { id: string }) {
  useTitle(id);
  const upstream = useUpstream(id);
  const me = useMe();
  if (upstream.isPending) return <Skeleton rows={10} />;
  if (upstream.error instanceof ApiError && upstream.error.status === 404) return <Missing what="upstream" />;
  if (upstream.data === undefined) return <Failed error={upstream.error} doing="read the upstream" retry={() => void upstream.refetch()} />;
  const mayManage = me.data?.rights.includes("manage") ?? false;
  const mayLogIn = me.data?.rights.includes("login") ?? false;
  const u = upstream.data;
  return (
    <>
      <Head upstream={u} mayManage={mayManage} mayLogIn={mayLogIn} />
      <WaitingTools name={u.name} mayManage={mayManage} />
      <Tabs label="About the upstream" tabs={[
        { id: "tools", name: "Tools", count: u.offered.length, body: <UpstreamTools upstream={u} mayManage={mayManage} /> },
        { id: "about", name: "About", body: <About upstream={u} /> },
        { id: "settings", name: "Settings", body: <UpstreamSettings upstream={u} mayManage={mayManage} /> },
        { id: "log", name: "Log", body: mayManage ? <Log name={u.name} /> : <Empty title="The log is hidden">It may contain secrets: log in to read it.</Empty> },
      ]} />
    </>
  );
}

function Head({ upstream: u, mayManage, mayLogIn }: { upstream: UpstreamDetails; mayManage: boolean; mayLogIn: boolean }) {
  const [, go] = useLocation();
  const { enable, ask, login, logout, restart, remove } = useUpstreamCommands(u.name);
  const used = u.state !== "off" && u.state !== "disabled" && u.state !== "wrong" && u.state !== "elsewhere";
  const failed = [enable, ask, login, logout, restart, remove].find((m) => m.isError);
  const error = u.error ?? u.health?.error;
  return (
    <>
      <div className="head">
        <div>
          <div className="upstream-head"><h1>{u.name}</h1><UpstreamState upstream={u} /></div>
          <p className="quiet"><span className="mono">{u.where}</span> · <Link href="/gateway">All upstreams</Link></p>
          {u.state === "running" ? null : <p className="quiet prose">{stateWords[u.state]}</p>}
        </div>
        <div className="actions">
          <button type="button" className="button" disabled={!mayManage || !used || ask.isPending} onClick={() => ask.mutate(undefined)}>{ask.isPending ? "Listing…" : "List its tools"}</button>
          {u.loginPossible !== true ? null : <button type="button" className="button" disabled={!mayLogIn || !used || login.isPending} onClick={() => login.mutate(undefined)}>{u.login === undefined ? "Log in" : "Log in again"}</button>}
          {u.login === undefined ? null : <button type="button" className="button" disabled={!mayLogIn || logout.isPending} onClick={() => logout.mutate(undefined)}>Log out</button>}
          <button type="button" className="button" disabled={!mayManage || !used || restart.isPending} onClick={() => restart.mutate(undefined)}>Restart</button>
          <button type="button" className="button" disabled={!mayManage || enable.isPending} onClick={() => enable.mutate({ base: u.base, enabled: u.disabled === true })}>{u.disabled === true ? "Enable" : "Disable"}</button>
          <Ask trigger={<button type="button" className="button" disabled={!mayManage}>Remove</button>} title={`Remove ${u.name}?`} verb="Remove the upstream"
            onAgree={() => void remove.mutateAsync(u.base).then(() => go("/gateway"), () => undefined)}>
            <p>It is removed from the configuration, and its approvals are deleted. Calls in progress are answered.</p>
          </Ask>
        </div>
      </div>
      {failed === undefined ? null : <Failed error={failed.error} doing="do it" />}
      {login.data === undefined ? null : (
        <p role="status"><a href={login.data.url} target="_blank" rel="noreferrer">Log in at {login.data.issuer}</a> within ten minutes, in this browser{new URL(login.data.url).searchParams.get("redirect_uri")?.startsWith("http://127.0.0.1:") === true ? " on the computer of the server" : ""}.</p>
      )}
      {error === undefined ? null : (
        <div className="state" role="alert">
          <h3>{u.error === undefined ? "It has failed" : "Its configuration is invalid"}</h3>
          <p className="prose mono">{error}</p>
          {u.health?.retryAt === undefined ? null : <p className="quiet">The next attempt is at {new Date(u.health.retryAt).toLocaleTimeString()}, or when you restart it.</p>}
        </div>
      )}
    </>
  );
}

function About({ upstream: u }: { upstream: UpstreamDetails }) {
  const facts: [string, React.ReactNode][] = [
    ["Connection", `${u.reached}: ${u.where}`],
    ["Configured", u.origin],
    ["Server", u.server === undefined ? "not connected yet" : `${u.server.server.name} ${u.server.server.version}, protocol version ${u.server.version}`],
    ["Asked", u.askedAt === undefined ? "never" : <When at={u.askedAt} />],
    ["Last ping", <Answered key="ping" upstream={u} />],
    ["Sessions", u.health === undefined ? "none" : `${u.health.sessions}, restarted ${u.health.restarts} times`],
    ["Prompts", u.prompts.length === 0 ? "none" : u.prompts.join(", ")],
    ["Resources", u.resources.toLocaleString()],
  ];
  return (
    <>
      <dl className="facts">{facts.map(([what, value]) => <Fact key={what} what={what} value={value} />)}</dl>
      {u.notes.length === 0 ? null : <><h3>Notes</h3><ul className="notes">{u.notes.map((n) => <li key={n}>{n}</li>)}</ul></>}
    </>
  );
}

function Fact({ what, value }: { what: string; value: React.ReactNode }) {
  return <><dt>{what}</dt><dd>{value}</dd></>;
}

function Log({ name }: { name: string }) {
  const log = useUpstreamLog(name);
  const [words, setWords] = useState("");
  if (log.isPending) return <Skeleton rows={4} />;
  if (log.isError) return <Failed error={log.error} doing="read the log" retry={() => void log.refetch()} />;
  if (log.data.lines.length === 0) return <Empty title="No log output">The lines that the upstream writes to standard error appear here.</Empty>;
  const shown = log.data.lines.filter((l) => l.toLowerCase().includes(words.toLowerCase()));
  return (
    <div className="change">
      <input type="search" aria-label="Search the log" placeholder="Search the log" value={words} onChange={(e) => setWords(e.target.value)} />
      <pre className="log" tabIndex={0} aria-label="Log">{shown.join("\n")}</pre>
    </div>
  );
}
