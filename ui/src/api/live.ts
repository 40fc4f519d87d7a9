import type { QueryClient } from "@tanstack/react-query";
import type { Schemas } from "./client";
import { receiveStream, type Liveness, type StreamEvent } from "./stream";

/**
 * Reads the stream of changes, and has whatever shows a changed thing read it
 * again. Lists are read again when the stream begins, so that nothing falls
 * between the two. A hidden tab reads when it is shown. Gives what ends it.
 */
export function follow(queries: QueryClient, tell: (l: Liveness) => void): () => void {
  const refresh = (queryKey: string[]) => void queries.invalidateQueries({ queryKey, refetchType: document.visibilityState === "hidden" ? "none" : "active" });
  const stale = batched((keys: string[]) => {
    for (const key of keys) refresh(key.split("\n"));
  });
  const onEvent = ({ type, data }: StreamEvent) => {
    if (type === "connected" || type === "reset") refresh([]);
    if (type === "definitions") stale("workflows", "workflow", "hooks", "hook", "hook-module", "machines", "machine");
    if (type === "requests") stale("requests");
    if (type !== "change") return;
    const change = JSON.parse(data) as Schemas["ChangeEvent"];
    if (change.subject === "run") stale("runs", `run\n${change.id}`);
    else if (change.subject === "session") stale("sessions", "projects", `session\n${change.id}`);
  };
  return receiveStream({ onEvent, onState: tell });
}

/** Gathers keys for a moment, so that a burst of changes is read once. */
function batched(flush: (keys: string[]) => void): (...keys: string[]) => void {
  const waiting = new Set<string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (...keys) => {
    for (const key of keys) waiting.add(key);
    timer ??= setTimeout(() => {
      timer = undefined;
      const all = [...waiting];
      waiting.clear();
      flush(all);
    }, 150);
  };
}
