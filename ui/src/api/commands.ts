import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answerOf, api, type Schemas } from "./client";

/** Answers the gate that was shown; refused where the run has moved on. */
export function useAnswerGate(runId: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["AnswerRequest"]) => answerOf(api.POST("/api/runs/{id}/answer", { params: { path: { id: runId } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["run", runId] }),
  });
}

/** Makes a new run of the beginning of one. */
export function useFork(runId: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (seq?: number) =>
      answerOf(api.POST("/api/runs/{id}/fork", { params: { path: { id: runId }, header: { "Idempotency-Key": crypto.randomUUID() } }, body: seq === undefined ? {} : { seq } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["runs"] }),
  });
}

/** Ends a run for good. */
export function useAbort(runId: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (reason: string) =>
      answerOf(api.POST("/api/runs/{id}/abort", { params: { path: { id: runId } }, body: reason === "" ? {} : { reason } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["run", runId] }),
  });
}
