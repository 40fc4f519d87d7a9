import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerOf, api, type Schemas } from "./client";

export type HeldCall = Schemas["HeldCall"];

/** How often held calls are read, in milliseconds: no event announces them. */
const often = 5_000;

/** The held calls, the newest first. */
export function useCalls(status?: Schemas["HeldCallStatus"]) {
  return useQuery({
    queryKey: ["calls", status ?? "all"], refetchInterval: often,
    queryFn: () => answerOf(api.GET("/api/calls", { params: { query: status === undefined ? {} : { status } } })),
  });
}

/** One held call with all its arguments. */
export function useCall(id: string) {
  return useQuery({
    queryKey: ["calls", "one", id], refetchInterval: often,
    queryFn: () => answerOf(api.GET("/api/calls/{id}", { params: { path: { id } } })),
  });
}

/** Answers a held call, once. */
export function useAnswerCall(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["HeldCallAnswer"]) => answerOf(api.POST("/api/calls/{id}/answer", { params: { path: { id } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["calls"] }),
  });
}
