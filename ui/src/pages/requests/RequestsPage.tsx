import { Link, useSearchParams } from "wouter";
import type { Schemas } from "../../api/client";
import { useRequests, useRequestStats, type RequestFilter } from "../../api/requests";
import { SearchBox } from "../../parts/SearchBox";
import { bytes } from "../../parts/sizes";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { RequestTable } from "./RequestTable";
import "./requests.css";
import { statuses, target, took } from "./words";

/** What went through the gateway, with what narrows it in the address. */
export function RequestsPage() {
  useTitle("Requests");
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string) => setSearch((now) => {
    if (value === "") now.delete(name);
    else now.set(name, value);
    return now;
  }, { replace: true });
  return (
    <section className="section">
      <div className="section-head"><h1>Requests</h1><Link href="/calls">Held calls</Link></div>
      <Filters search={search} set={set} />
      <Listed filter={filterOf(search)} />
      <ByTool />
    </section>
  );
}

const words = Object.keys(statuses) as Schemas["RequestStatus"][];

function filterOf(search: URLSearchParams): RequestFilter {
  const text = (name: "q" | "upstream" | "tool" | "hook"): RequestFilter => {
    const value = search.get(name) ?? "";
    return value === "" ? {} : { [name]: value };
  };
  const given = search.get("status") ?? "";
  const status = words.find((s) => s === given);
  const slower = Number(search.get("slower"));
  return {
    ...text("q"), ...text("upstream"), ...text("tool"), ...text("hook"),
    ...(given === "failed" ? { failed: true } : {}), ...(status === undefined ? {} : { status: [status] }),
    ...(Number.isInteger(slower) && slower > 0 ? { slowerThan: slower } : {}),
  };
}

const slow = [100, 1000, 10_000];

function Filters({ search, set }: { search: URLSearchParams; set: (name: string, value: string) => void }) {
  const hook = search.get("hook") ?? "";
  const tool = search.get("tool") ?? "";
  const upstream = search.get("upstream") ?? "";
  return (
    <div className="filters" role="search">
      <SearchBox label="Search requests" value={search.get("q") ?? ""} onSearch={(q) => set("q", q)} />
      <select aria-label="Status" value={search.get("status") ?? ""} onChange={(e) => set("status", e.target.value)}>
        <option value="">Any status</option>
        <option value="failed">All failures</option>
        {words.map((s) => <option key={s} value={s}>{statuses[s].word}</option>)}
      </select>
      <select aria-label="Took" value={search.get("slower") ?? ""} onChange={(e) => set("slower", e.target.value)}>
        <option value="">Any duration</option>
        {slow.map((ms) => <option key={ms} value={ms}>Slower than {took(ms)}</option>)}
      </select>
      {[["upstream", upstream], ["tool", tool], ["hook", hook]].map(([name = "", value = ""]) => value === "" ? null : (
        <button key={name} type="button" className="button" onClick={() => set(name, "")} aria-label={`Remove the filter ${name} ${value}`}>{name} {value} ×</button>
      ))}
    </div>
  );
}

function Listed({ filter }: { filter: RequestFilter }) {
  const requests = useRequests(filter);
  if (requests.isPending) return <Skeleton rows={12} />;
  if (requests.isError) return <Failed error={requests.error} doing="read the request log" retry={() => void requests.refetch()} />;
  const rows = requests.data.pages.flatMap((p) => p.requests);
  const { record, recording } = requests.data.pages[0] ?? { record: undefined, recording: undefined };
  const more = () => {
    if (requests.hasNextPage && !requests.isFetchingNextPage) void requests.fetchNextPage();
  };
  return (
    <>
      {recording?.error === undefined ? null : <p role="alert" className="prose">The last requests could not be recorded: {recording.error}</p>}
      {recording?.on === false ? <p className="quiet prose">This server records no requests: the setting <code>requests.record</code> is off.</p> : null}
      {rows.length === 0 ? <Nothing narrowed={Object.keys(filter).length > 0} /> : <RequestTable rows={rows} onEnd={more} />}
      {requests.hasNextPage ? <button type="button" className="button" onClick={more}>Show more</button> : null}
      {record === undefined || record.count === 0 ? null : (
        <p className="quiet">
          {record.count.toLocaleString()} recorded, {bytes(record.bytes)}
          {record.dropped > 0 ? `; ${record.dropped.toLocaleString()} more were dropped, because too many arrived at once or the file could not be written` : ""}.
        </p>
      )}
    </>
  );
}

function Nothing({ narrowed }: { narrowed: boolean }) {
  if (narrowed) return <Empty title="No matching requests">Remove a filter to see more.</Empty>;
  return (
    <Empty title="No requests yet">
      Each request to an upstream is recorded here. Add an upstream with <code>guideway upstream add</code>.
    </Empty>
  );
}

function ByTool() {
  const stats = useRequestStats(true);
  const tools = stats.data?.tools ?? [];
  if (tools.length === 0) return null;
  return (
    <>
      <h2>Last day, by tool</h2>
      <div className="requests-wide">
        <table className="table compact requests-figures" aria-label="Statistics of the last day, by tool">
          <thead>
            <tr>
              <th scope="col">Tool</th><th scope="col" className="number">Requests</th><th scope="col" className="number">Errors</th>
              <th scope="col" className="number">Median</th><th scope="col" className="number">99th percentile</th>
            </tr>
          </thead>
          <tbody>
            {tools.map((t) => (
              <tr key={`${t.method} ${t.upstream} ${t.tool}`}>
                <td data-label="Tool" data-main className="table-main">{target(t)}</td>
                <td data-label="Requests" data-named className="number">{t.count.toLocaleString()}</td>
                <td data-label="Errors" data-named className="number">{t.errors.toLocaleString()}</td>
                <td data-label="Median" data-named className="number">{took(t.p50)}</td>
                <td data-label="99th percentile" data-named className="number">{took(t.p99)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
