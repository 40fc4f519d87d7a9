import { Link } from "wouter";
import { ApiError, type Schemas } from "../../api/client";
import { useRequest } from "../../api/requests";
import { bytes } from "../../parts/sizes";
import { Failed, Missing, Skeleton } from "../../parts/States";
import { useTitle } from "../../parts/title";
import { When } from "../../parts/When";
import "./requests.css";
import { HookTrace } from "./HookTrace";
import { RequestStatus } from "./RequestStatus";
import { target, took } from "./words";

/** One request, and what each hook did to it. */
export function RequestPage({ id }: { id: string }) {
  const request = useRequest(id);
  useTitle(request.data === undefined ? "Request" : target(request.data.request));
  if (request.isPending) return <Skeleton rows={8} />;
  if (request.isError && request.error instanceof ApiError && request.error.status === 404) return <Missing what="request" />;
  if (request.isError) return <Failed error={request.error} doing="read the request" retry={() => void request.refetch()} />;
  const r = request.data.request;
  return (
    <section className="section">
      <p className="quiet"><Link href="/requests">Requests</Link></p>
      <h1>{target(r)}</h1>
      {r.error === undefined ? null : <p role="alert" className="prose request-error">{r.error}</p>}
      <Facts r={r} />
      {(r.graphs ?? []).map((g, i) => <HookTrace key={`${g.id} ${i}`} graph={g} />)}
      <Sent title="Arguments" body={r.request} />
      <Sent title="Answer" body={r.response} />
      {r.request === undefined && r.response === undefined ? (
        <p className="quiet prose">The bodies of this request are not recorded. The setting <code>requests.bodies</code> records bodies and redacts secrets.</p>
      ) : null}
    </section>
  );
}

function Facts({ r }: { r: Schemas["Request"] }) {
  return (
    <dl className="request-facts">
      <dt>Status</dt><dd><RequestStatus status={r.status} /></dd>
      <dt>When</dt><dd><When at={r.at} /> <span className="quiet">{new Date(r.at).toLocaleString()}</span></dd>
      <dt>Took</dt><dd>{took(r.ms)}</dd>
      <dt>Sizes</dt><dd>{bytes(r.bytesIn)} in, {bytes(r.bytesOut)} out</dd>
      <dt>Client</dt><dd>{r.client ?? "–"}{r.token === undefined ? "" : `, token ${r.token}`}</dd>
      {r.upstream === undefined ? null : <><dt>Upstream</dt><dd><Link href={`/requests?upstream=${encodeURIComponent(r.upstream)}`}>{r.upstream}</Link>{r.project === undefined ? "" : `, project ${r.project}`}</dd></>}
      {r.heldCall === undefined ? null : <><dt>Held call</dt><dd><Link href={`/calls/${r.heldCall}`}>{r.heldCall}</Link></dd></>}
      {r.traceId === undefined ? null : <><dt>Trace</dt><dd><code>{r.traceId}</code></dd></>}
      <dt>Id</dt><dd><code>{r.id}</code></dd>
    </dl>
  );
}

function Sent({ title, body }: { title: string; body: Schemas["RequestBody"] | undefined }) {
  if (body === undefined) return null;
  return (
    <>
      <h2>{title}</h2>
      <pre className="request-body" tabIndex={0} aria-label={title}>{pretty(body)}</pre>
      {body.cut === true ? <p className="quiet">The text is truncated.</p> : null}
      {body.redacted === true ? <p className="quiet">Secrets are redacted.</p> : null}
    </>
  );
}

/** JSON with line breaks; what was cut is shown as it is. */
function pretty(body: Schemas["RequestBody"]): string {
  try {
    return JSON.stringify(JSON.parse(body.text), null, 2);
  } catch {
    return body.text;
  }
}
