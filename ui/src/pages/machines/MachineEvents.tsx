import { useLocation } from "wouter";
import type { Schemas } from "../../api/client";
import { useMachineCommand, useMachineEvents } from "../../api/machines";
import { LongList } from "../../parts/LongList";
import { useNotice } from "../../parts/Notice";
import { Failed, Skeleton } from "../../parts/States";
import { sentence } from "../run/events";

/** The events of a run; a new run can go its own way from each. */
export function MachineEvents({ id }: { id: string }) {
  const events = useMachineEvents(id);
  const command = useMachineCommand(id);
  const [, go] = useLocation();
  const tell = useNotice();
  const fork = (seq: number) => command.mutate({ do: "fork", body: { seq } }, {
    onSuccess: (made) => {
      go(`/machine-runs/${made.run.runId}`);
      tell({ text: `Forked at event ${seq}. This is the new run.` });
    },
    onError: (e) => tell({ text: `Could not fork: ${e.message}`, failed: true }),
  });
  if (events.isPending) return <Skeleton rows={8} />;
  if (events.isError) return <Failed error={events.error} doing="read the events" retry={() => void events.refetch()} />;
  const list = events.data.filter((e) => !e.kind.startsWith("lease_"));
  return (
    <LongList label="Events" count={list.length} estimate={36} keyOf={(i) => list[i]?.seq ?? i} className="machine-events">
      {(i) => {
        const e = list[i];
        return e === undefined ? null : <EventRow event={e} busy={command.isPending} onFork={fork} />;
      }}
    </LongList>
  );
}

function EventRow({ event, busy, onFork }: { event: Schemas["Event"]; busy: boolean; onFork: (seq: number) => void }) {
  return (
    <div className="machine-event">
      <span className="mono quiet machine-seq">{event.seq}</span> <span title={event.kind}>{said[event.kind] ?? sentence(event.kind)}</span> <span className="machine-said">{words(event.data as Fact | undefined)}</span>
      {event.seq > 1 ? <button type="button" className="button button-small" disabled={busy} onClick={() => onFork(event.seq)}>Fork from here</button> : null}
    </div>
  );
}

/** What has other words than its name. */
const said: Record<string, string> = { llm_intent: "Model asked", llm_result: "Model answered", tool_intent: "Tool called", tool_result: "Tool answered", handler_intent: "Handler called", handler_result: "Handler answered" };

interface Fact {
  state?: string;
  agent?: string;
  function?: string;
  next?: string;
  unknown?: boolean;
  tool?: { name: string; arguments: string };
  result?: { content: string };
  response?: { message: { content: string | null } };
  fault?: { message: string; file?: string; line?: number };
  pause?: { message: string };
}

function words(f: Fact | undefined): string {
  if (f === undefined) return "";
  return [
    f.state, f.agent, f.function, f.tool === undefined ? undefined : `${f.tool.name} ${f.tool.arguments}`, f.next === undefined ? undefined : `to ${f.next}`,
    f.response?.message.content ?? undefined, f.result?.content, f.fault?.message, f.pause?.message, f.unknown === true ? "outcome unknown" : undefined,
  ].filter((t) => t !== undefined && t !== "").join(" · ");
}
