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
