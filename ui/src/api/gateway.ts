import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerOf, api, type Schemas } from "./client";

export type Upstream = Schemas["UpstreamSummary"];
export type UpstreamDetails = Schemas["UpstreamDetails"];

/** How often what upstreams do by themselves is looked at, in milliseconds. */
const often = 5_000;

/** The upstreams, with how they are. */
export function useUpstreams() {
  return useQuery({ queryKey: ["upstreams"], refetchInterval: often, queryFn: () => answerOf(api.GET("/api/upstreams")) });
}

/** All that is known of an upstream. */
export function useUpstream(name: string) {
  return useQuery({
    queryKey: ["upstreams", name], refetchInterval: often,
    queryFn: () => answerOf(api.GET("/api/upstreams/{name}", { params: { path: { name } } })),
  });
}

/** Tools of an upstream that are not what was approved. */
export function useWaitingTools(name: string) {
  return useQuery({
    queryKey: ["upstreams", name, "waiting"], refetchInterval: often,
    queryFn: () => answerOf(api.GET("/api/upstreams/{name}/waiting", { params: { path: { name } } })),
  });
}

/** What an upstream has said on its error output. */
export function useUpstreamLog(name: string) {
  return useQuery({
    queryKey: ["upstreams", name, "log"], refetchInterval: often,
    queryFn: () => answerOf(api.GET("/api/upstreams/{name}/log", { params: { path: { name }, query: { lines: 500 } } })),
  });
}

/** The projects that upstreams are in. */
export function useUpstreamProjects() {
  return useQuery({ queryKey: ["upstreams", "projects of all"], queryFn: () => answerOf(api.GET("/api/upstream-projects")) });
}

/** A change of upstreams; what shows them reads them again. */
function useChange<Given, Got>(change: (given: Given) => Promise<Got>) {
  const queries = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => queries.invalidateQueries({ queryKey: ["upstreams"] }) });
}

/** Adds an upstream. */
export function useAddUpstream() {
  return useChange((body: Schemas["AddUpstreamRequest"]) => answerOf(api.POST("/api/upstreams", { body })));
}

/** Takes over the servers of a client's configuration; with look it only says which. */
export function useImport() {
  return useChange((body: Schemas["ImportRequest"]) => answerOf(api.POST("/api/upstream-import", { body })));
}

/** What the configuration changes in a tool. */
export type ToolRule = NonNullable<Schemas["UpstreamConfig"]["tools"]>[string];

/** What can be done with one upstream. Each change names the version that it began from. */
export function useUpstreamCommands(name: string) {
  const params = { path: { name } };
  return {
    change: useChange((body: Schemas["ChangeUpstreamRequest"]) => answerOf(api.PUT("/api/upstreams/{name}", { params, body }))),
    enable: useChange((body: { base: string; enabled: boolean }) => answerOf(api.PUT("/api/upstreams/{name}/enabled", { params, body }))),
    move: useChange((body: { base: string; project: string }) => answerOf(api.PUT("/api/upstreams/{name}/project", { params, body }))),
    setTool: useChange(({ tool, ...body }: ToolRule & { tool: string; base: string }) =>
      answerOf(api.PUT("/api/upstreams/{name}/tools/{tool}", { params: { path: { name, tool } }, body }))),
    restart: useChange(() => answerOf(api.POST("/api/upstreams/{name}/restart", { params }))),
    login: useChange(() => answerOf(api.POST("/api/upstreams/{name}/login", { params }))),
    logout: useChange(() => answerOf(api.DELETE("/api/upstreams/{name}/login", { params }))),
    ask: useChange(() => answerOf(api.POST("/api/upstreams/{name}/ask", { params }))),
    remove: useChange((base: string) => answerOf(api.DELETE("/api/upstreams/{name}", { params: { path: { name }, query: { base } } }))),
    approve: useChange((body: Schemas["ApproveToolsRequest"]) => answerOf(api.POST("/api/upstreams/{name}/approve", { params, body }))),
  };
}

/** The named tokens. */
export function useTokens() {
  return useQuery({ queryKey: ["tokens"], queryFn: () => answerOf(api.GET("/api/tokens")) });
}

/** Makes a token; its secret is in the answer alone. */
export function useMakeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas["MakeTokenRequest"]) => answerOf(api.POST("/api/tokens", { body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}

/** Ends a token, at once and everywhere. */
export function useRevokeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, user }: { name: string; user: string }) => answerOf(api.DELETE("/api/tokens/{name}", { params: { path: { name }, query: { user } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}
