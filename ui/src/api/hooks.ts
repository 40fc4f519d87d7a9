import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerOf, api, type Schemas } from "./client";

/** A graph as the editor sends it. */
type Graph = Schemas["HookGraph"];

/** All hook graphs and modules, and how they stand. */
export function useHooks() {
  return useQuery({ queryKey: ["hooks"], queryFn: () => answerOf(api.GET("/api/hooks")) });
}

/** A hook graph to work on. */
export function useHook(id: string, enabled = true) {
  return useQuery({ queryKey: ["hook", id], enabled, queryFn: () => answerOf(api.GET("/api/hooks/{id}", { params: { path: { id } } })) });
}

/** What was saved of a graph. */
export function useHookVersions(id: string) {
  return useQuery({ queryKey: ["hook", id, "versions"], queryFn: () => answerOf(api.GET("/api/hooks/{id}/versions", { params: { path: { id } } })) });
}

/** One version of a graph. It never changes. */
export function useHookVersion(id: string, version: string) {
  return useQuery({
    queryKey: ["hook-version", id, version], staleTime: Infinity,
    queryFn: () => answerOf(api.GET("/api/hooks/{id}/versions/{version}", { params: { path: { id, version } } })),
  });
}

/** A module with its script. */
export function useHookModule(id: string) {
  return useQuery({ queryKey: ["hook-module", id], enabled: id !== "", queryFn: () => answerOf(api.GET("/api/hook-modules/{id}", { params: { path: { id } } })) });
}

/** What nodes took in the last requests; no nodes where none are recorded. */
export function useHookStats(id: string | undefined) {
  return useQuery({
    queryKey: ["hook", id, "stats"], enabled: id !== undefined,
    queryFn: () => answerOf(api.GET("/api/hooks/{id}/stats", { params: { path: { id: id ?? "" } } })),
  });
}

/** The last requests of a method that were recorded, to take one as a sample. */
export function useRecorded(method: string) {
  return useQuery({ queryKey: ["requests", "samples", method], queryFn: () => answerOf(api.GET("/api/requests", { params: { query: { method, limit: 30 } } })) });
}

/** One recorded request, with its bodies where they are kept. */
export async function readRecorded(id: string): Promise<Schemas["Request"]> {
  return (await answerOf(api.GET("/api/requests/{id}", { params: { path: { id } } }))).request;
}

/** What scripts can use, as TypeScript. */
export function useHookTypes() {
  return useQuery({ queryKey: ["hook-types"], staleTime: Infinity, queryFn: () => answerOf(api.GET("/api/hook-types")) });
}

/** Says what there is to say of a graph; it keeps nothing. */
export function checkHook(graph: Graph, source: string): Promise<Schemas["HookVerdict"]> {
  return answerOf(api.POST("/api/hook-check", { body: { graph, source } }));
}

/** Says what there is to say of a text, be it a graph or a module. */
export function checkHookText(text: string): Promise<Schemas["HookVerdict"]> {
  return answerOf(api.POST("/api/hook-check", { body: { text } }));
}

/** Returns the file of a graph for other installations. */
export async function exportHook(id: string): Promise<Blob> {
  const graph = await answerOf(api.GET("/api/hooks/{id}/export", { params: { path: { id } } }));
  return new Blob([JSON.stringify(graph, null, 2)], { type: "application/json" });
}

/** Takes a request through a graph without any server. */
export function useTestHook() {
  return useMutation({ mutationFn: (body: Schemas["HookTest"]) => answerOf(api.POST("/api/hook-test", { body })) });
}

/** A command, after which what is shown of graphs is read again. */
function useHookCommand<T, R>(send: (body: T) => Promise<R>, keys = ["hooks", "hook", "hook-module"]) {
  const queries = useQueryClient();
  return useMutation({ mutationFn: send, onSuccess: () => Promise.all(keys.map((key) => queries.invalidateQueries({ queryKey: [key] }))) });
}

/** Has the page of a graph show what the server has answered, in one step with what the caller does next. */
export function useShowHook() {
  const queries = useQueryClient();
  return (answer: Schemas["HookAnswer"]) => {
    queries.setQueryData(["hook", answer.hook.id], answer);
    void queries.invalidateQueries({ queryKey: ["hook", answer.hook.id, "versions"] });
  };
}

/** Saves a graph; refused where somebody else has changed it. */
export function useSaveHook() {
  return useHookCommand(({ id, ...body }: Schemas["HookSave"] & { id: string }) => answerOf(api.PUT("/api/hooks/{id}", { params: { path: { id } }, body })), ["hooks"]);
}

/** Deletes the file of a graph that is off. */
export function useDeleteHook() {
  return useHookCommand(({ id, source, base }: { id: string; source: string; base: string }) =>
    answerOf(api.DELETE("/api/hooks/{id}", { params: { path: { id }, query: { source, base } } })));
}

/** Makes exactly what was looked at active. */
export function useEnableHook() {
  return useHookCommand(({ id, ...body }: Schemas["HookEnable"] & { id: string }) => answerOf(api.POST("/api/hooks/{id}/enable", { params: { path: { id } }, body })));
}

/** Turns a graph off. */
export function useDisableHook() {
  return useHookCommand((id: string) => answerOf(api.POST("/api/hooks/{id}/disable", { params: { path: { id } } })));
}

/** Saves an earlier version anew. */
export function useRestoreHook() {
  return useHookCommand(({ id, version, base }: { id: string; version: string; base: string }) =>
    answerOf(api.POST("/api/hooks/{id}/versions/{version}/restore", { params: { path: { id, version } }, body: { base } })), ["hooks"]);
}

/** Saves the script of a module. */
export function useSaveHookModule() {
  return useHookCommand(({ id, ...body }: Schemas["HookModuleSave"] & { id: string }) => answerOf(api.PUT("/api/hook-modules/{id}", { params: { path: { id } }, body })));
}
