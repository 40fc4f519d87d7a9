import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { answerOf, api, type Schemas } from "./client";

/** What narrows the record of requests; it is in the address of the page. */
export interface RequestFilter {
  q?: string;
  upstream?: string;
  tool?: string;
  status?: Schemas["RequestStatus"][];
  failed?: boolean;
  hook?: string;
  slowerThan?: number;
}

/** Requests, the last first, page by page. */
export function useRequests(filter: RequestFilter) {
  return useInfiniteQuery({
    queryKey: ["requests", filter],
    initialPageParam: "",
    queryFn: ({ pageParam }) =>
      answerOf(api.GET("/api/requests", { params: { query: { ...filter, limit: 200, ...(pageParam === "" ? {} : { cursor: pageParam }) } } })),
    getNextPageParam: (last) => last.next,
  });
}

/** Figures by tool, of the last day. */
export function useRequestStats(enabled: boolean) {
  return useQuery({
    queryKey: ["requests", "stats"],
    enabled,
    queryFn: () => answerOf(api.GET("/api/requests/stats", { params: { query: {} } })),
  });
}

/** One request with what hooks did to it. */
export function useRequest(id: string) {
  return useQuery({ queryKey: ["requests", "one", id], queryFn: () => answerOf(api.GET("/api/requests/{id}", { params: { path: { id } } })) });
}
