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

/** Starts a run. */
export function useStart() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["StartRequest"]) => answerOf(api.POST("/api/runs", { params: { header: { "Idempotency-Key": crypto.randomUUID() } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["runs"] }),
  });
}

/** Deletes session documents; each can be restored. */
export function useDeleteSessions() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (sessions: Schemas["BulkRef"][]) => answerOf(api.POST("/api/sessions/bulk-delete", { body: { sessions } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  });
}

/** Brings deleted session documents back. */
export function useRestoreSessions() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (refs: Schemas["SessionRef"][]) =>
      Promise.all(refs.map(({ workflowId, id, projectId }) =>
        answerOf(api.POST("/api/sessions/{workflow}/{id}/restore", { params: { path: { workflow: workflowId, id }, query: { project: projectId } } })))),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  });
}

/** Says what there is to say of a text; it keeps nothing. */
export function judge(text: string): Promise<Schemas["Verdict"]> {
  return answerOf(api.POST("/api/validate", { body: { text } }));
}

/** Walks a trial from the beginning; it keeps nothing. */
export function useTrial() {
  return useMutation({ mutationFn: (body: Schemas["TryRequest"]) => answerOf(api.POST("/api/try", { body })) });
}

/** Saves a definition; refused where somebody else has changed it. */
export function useSaveWorkflow() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ id, ...body }: Schemas["SaveRequest"] & { id: string }) => answerOf(api.PUT("/api/workflows/{id}/source", { params: { path: { id } }, body })),
    onSuccess: async (_, { id }) => {
      await queries.invalidateQueries({ queryKey: ["workflows"] });
      await queries.invalidateQueries({ queryKey: ["workflow", id] });
    },
  });
}
