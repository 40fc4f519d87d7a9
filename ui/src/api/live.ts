import type { QueryClient } from "@tanstack/react-query";
import type { Schemas } from "./client";

/** Whether the stream of changes is there. */
export type Liveness = "connecting" | "live" | "lost";

/**
 * Reads the stream of changes, and has whatever shows a changed thing read it
 * again. Lists are read again when the stream begins, so that nothing falls
 * between the two. Gives what ends it.
 */
export function follow(queries: QueryClient, tell: (l: Liveness) => void): () => void {
  const events = new EventSource("/api/events");
  const stale = batched((keys: string[]) => {
    for (const key of keys) void queries.invalidateQueries({ queryKey: key.split("\n") });
  });
  events.addEventListener("connected", () => {
    tell("live");
    void queries.invalidateQueries();
  });
  events.addEventListener("reset", () => void queries.invalidateQueries());
  events.addEventListener("change", (event) => {
    const change = JSON.parse(event.data as string) as Schemas["ChangeEvent"];
    if (change.subject === "run") stale("runs", `run\n${change.id}`);
    else if (change.subject === "session") stale("sessions", "projects", `session\n${change.id}`);
  });
  events.addEventListener("definitions", () => stale("workflows", "workflow", "hooks", "hook", "hook-module", "machines", "machine"));
  events.addEventListener("requests", () => stale("requests"));
  events.onerror = () => tell(events.readyState === EventSource.CLOSED ? "lost" : "connecting");
  return () => events.close();
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
