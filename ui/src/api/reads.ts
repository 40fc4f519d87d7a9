import { useInfiniteQuery, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { answerIn } from "../pages/run/gates";
import { answerOf, api, type Schemas } from "./client";

/** What narrows a list of runs; it is in the address of the page. */
export interface RunFilter {
  status?: Schemas["RunStatus"][];
  workflow?: string;
  project?: string;
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

/** A run and where it is, without its events. */
export function useRun(id: string) {
  return useQuery(runQuery(id));
}

/** Runs and where they are, without their events. */
export function useRunsByID(ids: string[]) {
  return useQueries({ queries: ids.map(runQuery) });
}

function runQuery(id: string) {
  return { queryKey: ["run", id], queryFn: () => answerOf(api.GET("/api/runs/{id}", { params: { path: { id }, query: { limit: 0 } } })) };
}

/** All runs that wait for a person. */
export function useWaitingRuns() {
  return useQuery({
    queryKey: ["runs", "waiting"],
    queryFn: async () => {
      const runs: Schemas["Run"][] = [];
      for (let cursor: string | undefined; ;) {
        const page = await answerOf(api.GET("/api/runs", { params: { query: { person: true, limit: 500, ...(cursor === undefined ? {} : { cursor }) } } }));
        runs.push(...page.runs);
        cursor = page.next;
        if (cursor === undefined) return runs;
      }
    },
  });
}

/** How many events one request asks for. */
const eventPage = 2_000;

/** All events of a run. They never change, so only those that are new are read. */
export function useRunEvents(id: string) {
  const queries = useQueryClient();
  const queryKey = ["run", id, "events"];
  return useQuery({
    queryKey,
    queryFn: async () => {
      let events = queries.getQueryData<Schemas["Event"][]>(queryKey) ?? [];
      for (;;) {
        const after = events[events.length - 1]?.seq ?? 0;
        const page = await answerOf(api.GET("/api/runs/{id}", { params: { path: { id }, query: { after, limit: eventPage } } }));
        if (page.events.length > 0) events = [...events, ...page.events];
        if (page.nextAfter === undefined) return events;
        queries.setQueryData(queryKey, events); // what is there is shown while the rest comes
      }
    },
  });
}

/** Who answered a gate that was shown at event after, from the events up to seq. */
export function useAnswered(id: string, after: number, seq: number, options: Schemas["Position"]["options"], enabled: boolean) {
  return useQuery({
    queryKey: ["answered", id, after, seq],
    enabled,
    staleTime: Infinity,
    queryFn: async () => {
      const { events } = await answerOf(api.GET("/api/runs/{id}", { params: { path: { id }, query: { after, limit: 200 } } }));
      return answerIn(events, options) ?? null;
    },
  });
}

/** The definition that a run is pinned to. It never changes. */
export function useRunDefinition(id: string) {
  return useQuery({
    queryKey: ["definition", id],
    staleTime: Infinity,
    queryFn: () => answerOf(api.GET("/api/runs/{id}/definition", { params: { path: { id } } })),
  });
}

/** A session document. */
export function useSession(workflow: string, id: string, project: string | undefined, enabled: boolean) {
  return useQuery({
    queryKey: ["session", id, workflow, project],
    enabled,
    queryFn: () =>
      answerOf(api.GET("/api/sessions/{workflow}/{id}", { params: { path: { workflow, id }, query: project === undefined ? {} : { project } } })),
  });
}

/** What validation found in a session document. */
export function useSessionFindings(workflow: string, id: string, project: string) {
  return useQuery({
    queryKey: ["session", id, workflow, project, "validation"],
    queryFn: () => answerOf(api.GET("/api/sessions/{workflow}/{id}/validation", { params: { path: { workflow, id }, query: { project } } })),
  });
}

/** A session document by its id alone; a conflict where several have it. */
export function useSessionByID(id: string, enabled: boolean) {
  return useQuery({
    queryKey: ["session", id],
    enabled,
    queryFn: () => answerOf(api.GET("/api/sessions/{id}", { params: { path: { id }, query: {} } })),
  });
}

/** Projects that have documents or runs. */
export function useProjects() {
  return useQuery({ queryKey: ["projects"], queryFn: () => answerOf(api.GET("/api/projects")) });
}

/** The variables of a run by layer. */
export function useRunContext(id: string) {
  return useQuery({
    queryKey: ["run", id, "context"],
    queryFn: () => answerOf(api.GET("/api/runs/{id}/context", { params: { path: { id } } })),
  });
}

/** The checkpoints of a run, the newest first. */
export function useRunCheckpoints(id: string) {
  return useQuery({
    queryKey: ["run", id, "checkpoints"],
    queryFn: () => answerOf(api.GET("/api/runs/{id}/checkpoints", { params: { path: { id }, query: { limit: 200 } } })),
  });
}

/** What differs between two checkpoints; from is the parent where it is not given. */
export function useCheckpointDiff(id: string, from: string | undefined) {
  return useQuery({
    queryKey: ["checkpoint", id, "diff", from],
    staleTime: Infinity,
    queryFn: () => answerOf(api.GET("/api/checkpoints/{id}/diff", { params: { path: { id }, query: from === undefined ? {} : { from } } })),
  });
}

/** Whether contexts are kept, and how. */
export function useCheckpointHealth() {
  return useQuery({ queryKey: ["checkpoints"], queryFn: () => answerOf(api.GET("/api/checkpoints", { params: { query: { limit: 1 } } })) });
}

/** All workflows that are served. */
export function useWorkflows() {
  return useQuery({ queryKey: ["workflows"], queryFn: () => answerOf(api.GET("/api/workflows")) });
}

/** Where workflows come from, and what did not load. */
export function useCatalog() {
  return useQuery({ queryKey: ["workflows", "catalog"], queryFn: () => answerOf(api.GET("/api/catalog")) });
}

/** A workflow with its definition. */
export function useWorkflow(id: string) {
  return useQuery({ queryKey: ["workflow", id], queryFn: () => answerOf(api.GET("/api/workflows/{id}", { params: { path: { id } } })) });
}

/** The text of a workflow. */
export function useWorkflowText(id: string, enabled = true) {
  return useQuery({
    queryKey: ["workflow", id, "source"],
    enabled,
    queryFn: () => answerOf(api.GET("/api/workflows/{id}/source", { params: { path: { id } } })),
  });
}

/** The JSON Schema of a dialect. */
export function useSchema(dialect: string) {
  return useQuery({ queryKey: ["schema", dialect], staleTime: Infinity, queryFn: () => answerOf(api.GET("/api/schemas/{dialect}", { params: { path: { dialect } } })) });
}

/** Returns the bundle of a run for another installation, byte by byte. */
export function exportRun(id: string): Promise<Blob> {
  return answerOf(api.GET("/api/runs/{id}/export", { params: { path: { id } }, parseAs: "blob" }));
}

export type Right = Schemas["Me"]["rights"][number];

/** Whether this browser may do something; it may, as long as that is not known. */
export function useMay(right: Right): boolean {
  return useMe().data?.rights.includes(right) ?? true;
}

/** What this browser may do. */
export function useMe() {
  return useQuery({ queryKey: ["me"], staleTime: Infinity, queryFn: () => answerOf(api.GET("/api/me")) });
}
