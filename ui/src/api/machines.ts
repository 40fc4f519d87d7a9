import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answerOf, api, type Schemas } from "./client";
import { escapeData } from "./hidden";
import { openStream, whileVisible } from "./stream";

/** How often lists of machines are read again; their runs are in no feed. */
const again = 3_000;

/** The agent machines that there are, with those that do not load. */
export function useMachines() {
  return useQuery({ queryKey: ["machines"], queryFn: () => answerOf(api.GET("/api/machines")) });
}

/** A machine, with its definition. */
export function useMachine(name: string) {
  return useQuery({ queryKey: ["machine", name], queryFn: () => answerOf(api.GET("/api/machines/{name}", { params: { path: { name } } })) });
}

/** Runs of machines, the last changed first, page by page. Who reads far back has them
 * read again less often. */
export function useMachineRuns() {
  return useInfiniteQuery({
    queryKey: ["machine-runs"],
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      answerOf(api.GET("/api/machine-runs", { params: { query: { limit: 200, ...(pageParam === "" ? {} : { cursor: pageParam }) } } })),
    getNextPageParam: (last) => last.next,
    refetchInterval: (query) => again * (query.state.data?.pages.length ?? 1) ** 2,
  });
}

/** A run of a machine, with what was said in it. */
export function useMachineRun(id: string) {
  return useQuery({ queryKey: ["machine-run", id], queryFn: () => answerOf(api.GET("/api/machine-runs/{id}", { params: { path: { id } } })) });
}

/** The events of a run of a machine. */
export function useMachineEvents(id: string) {
  return useQuery({
    queryKey: ["machine-run", id, "events"],
    queryFn: async () => {
      const events: Schemas["Event"][] = [];
      for (let after = 0; ;) {
        const page = await answerOf(api.GET("/api/machine-runs/{id}/events", { params: { path: { id }, query: { after, limit: 2_000 } } }));
        events.push(...page.events);
        if (page.nextAfter === undefined) return events;
        after = page.nextAfter;
      }
    },
  });
}

/** What an agent is saying now. */
export interface Saying {
  agent: string;
  text: string;
}

/** Follows a run while it is at work: what is read of it is read again when it has
 * changed, and what an agent is saying comes piece by piece. */
export function useMachineNews(id: string): Saying | undefined {
  const queries = useQueryClient();
  const [saying, setSaying] = useState<Saying | undefined>();
  useEffect(() => whileVisible(() => {
    const source = openStream(`/api/machine-runs/${encodeURIComponent(id)}/stream`);
    source.addEventListener("status", () => {
      setSaying(undefined);
      void queries.invalidateQueries({ queryKey: ["machine-run", id] });
    });
    source.addEventListener("delta", (e: MessageEvent<string>) => {
      const delta = escapeData(JSON.parse(e.data) as Schemas["MachineDelta"]);
      setSaying((now) => ({ agent: delta.agent, text: (now?.agent === delta.agent ? now.text : "") + (delta.text ?? "") }));
    });
    return () => source.close();
  }), [queries, id]);
  return saying;
}

/** Starts a run of a machine. */
export function useStartMachine() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["MachineStart"]) => answerOf(api.POST("/api/machine-runs", { params: { header: { "Idempotency-Key": crypto.randomUUID() } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["machine-runs"] }),
  });
}

/** What is commanded of a run of a machine. */
export type MachineCommand =
  | { do: "input"; body: Schemas["MachineInput"] }
  | { do: "resume"; body: Schemas["MachineResume"] }
  | { do: "cancel"; body: { reason?: string } }
  | { do: "fork"; body: { seq?: number } };

/** Carries out a command on a run, and gives where it stands then. */
export function useMachineCommand(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (c: MachineCommand): Promise<Schemas["MachineRunAnswer"]> => {
      const params = { path: { id } };
      switch (c.do) {
        case "input": return answerOf(api.POST("/api/machine-runs/{id}/input", { params, body: c.body }));
        case "resume": return answerOf(api.POST("/api/machine-runs/{id}/resume", { params, body: c.body }));
        case "cancel": return answerOf(api.POST("/api/machine-runs/{id}/cancel", { params, body: c.body }));
        case "fork": return answerOf(api.POST("/api/machine-runs/{id}/fork", { params, body: c.body }));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["machine-run", id] }),
  });
}
