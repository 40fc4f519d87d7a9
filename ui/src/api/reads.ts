import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { answerOf, api, type Schemas } from "./client";

/** What narrows a list of runs; it is in the address of the page. */
export interface RunFilter {
  status?: Schemas["RunStatus"][];
  workflow?: string;
  person?: boolean;
}

/** Runs, the last changed first, page by page. */
export function useRuns(filter: RunFilter) {
  return useInfiniteQuery({
    queryKey: ["runs", filter],
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      answerOf(api.GET("/api/runs", { params: { query: { ...filter, limit: 100, ...(pageParam === "" ? {} : { cursor: pageParam }) } } })),
    getNextPageParam: (last) => last.next,
  });
}

/** Runs by words, the best first. */
export function useRunSearch(words: string) {
  return useQuery({
    queryKey: ["runs", "search", words],
    enabled: words !== "",
    queryFn: () => answerOf(api.GET("/api/runs/search", { params: { query: { q: words, limit: 50 } } })),
  });
}

/** Session documents, the last changed first. */
export function useSessions() {
  return useQuery({ queryKey: ["sessions"], queryFn: () => answerOf(api.GET("/api/sessions", { params: { query: {} } })) });
}

/** A run, where it is, and its first events. */
export function useRun(id: string) {
  return useQuery({
    queryKey: ["run", id],
    queryFn: () => answerOf(api.GET("/api/runs/{id}", { params: { path: { id }, query: { limit: 5000 } } })),
  });
}

/** The definition that a run is pinned to. It never changes. */
export function useRunDefinition(id: string) {
  return useQuery({
    queryKey: ["run", id, "definition"],
    staleTime: Infinity,
    queryFn: () => answerOf(api.GET("/api/runs/{id}/definition", { params: { path: { id } } })),
  });
}

/** A session document. */
export function useSession(workflow: string, id: string, project?: string) {
  return useQuery({
    queryKey: ["session", id, workflow, project],
    queryFn: () =>
      answerOf(api.GET("/api/sessions/{workflow}/{id}", { params: { path: { workflow, id }, query: project === undefined ? {} : { project } } })),
  });
}
