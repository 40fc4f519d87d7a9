import { Link } from "wouter";
import { useCalls, type HeldCall } from "../../api/calls";
import { Empty, Failed, Skeleton } from "../../parts/States";
import { Status } from "../../parts/Status";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import "../../parts/table.css";

/** The calls of tools that wait for a person, and the answered ones. */
export function CallsPage() {
  useTitle("Held calls");
  const calls = useCalls();
  return (
    <section className="section">
      <div className="section-head"><h1>Held calls</h1><Link href="/requests">Requests</Link></div>
      <p className="quiet prose">A held call is sent only after you approve it, once.</p>
      {calls.isPending ? <Skeleton rows={4} /> : null}
      {calls.isError ? <Failed error={calls.error} doing="read the held calls" retry={() => void calls.refetch()} /> : null}
      {calls.isSuccess && calls.data.calls.length === 0 ? <Empty title="No held calls">The setting <code>gateway.tools</code>, the tools of a step or a hook graph holds calls.</Empty> : null}
      {calls.isSuccess && calls.data.calls.length > 0 ? <CallTable list={calls.data.calls} /> : null}
    </section>
  );
}

/** Held calls as rows. */
export function CallTable({ list }: { list: HeldCall[] }) {
  return (
    <table className="table compact" aria-label="Held calls">
      <thead><tr><th scope="col">Tool</th><th scope="col">Status</th><th scope="col">Client</th><th scope="col">Made</th><th scope="col">Arguments</th></tr></thead>
      <tbody>
        {list.map((c) => (
          <tr key={c.id}>
            <td data-label="Tool" data-main><Link href={`/calls/${c.id}`}>{c.name}</Link></td>
            <td data-label="Status"><Status word={c.status} /></td>
            <td data-label="Client">{c.client}</td>
            <td data-label="Made" data-named><When at={c.createdAt} /></td>
            <td data-label="Arguments" data-line className="quiet mono" title={c.preview ?? ""}>{c.preview ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
