import { Client } from "./mcp";
import type { Server } from "./server";

/** What the tests know of the data. */
export interface Seeded {
  client: Client;
  /** A run that waits for a person's answer. */
  waiting: string;
  /** A run in a loop, with refusals, outputs and checkpoints. */
  working: string;
  completed: string;
  session: { id: string; workflow: string };
}

const plan = "The next version is 4.0.0. It touches api, cli and docs. The flag --old goes, which breaks scripts.";

/** Fills a server with what a person would find after a day of work. */
export async function seed(server: Server): Promise<Seeded> {
  const client = await Client.connect(server.url, server.token);
  const working = await begin(client, "Release 4.0 with the new flags");
  await next(client, working, { output: plan, context: { breaking: true, announce: true, packages: ["api", "cli", "docs"], debug_trace: "x".repeat(400), user_goal: "Release 4.0 with the new flags" } });
  await approve(server, working);
  await next(client, working, { output: "Notes: the flag --old is gone; use --new." });
  await next(client, working, { output: "Replace --old by --new in scripts." });
  await next(client, working, { output: "api 4.0.0 is published and installs." });
  await client.call("workflow_checkpoint_save", { handle: await handleOf(client, working), context: { published: ["api"] }, name: "api is out" });
  await next(client, working, { output: "Told the users of api." });
  const waiting = await begin(client, "Release 4.1: faster start");
  await next(client, waiting, { output: "The next version is 4.1.0. It touches cli alone. Nothing breaks.", context: { breaking: false } });
  const completed = await complete(client, server);
  for (const [workflowId, goal] of [["coding-task", "Refactor the auth module"], ["bug-investigation", "Find why the importer drops rows"], ["document-writing", "Write the guide for operators"]] as const) {
    await client.call("workflow_start", { workflowId, goal });
  }
  await client.call("workflow_start", { workflowId: "incident-response", goal: "Checkout answers 500 since the deploy" });
  await documents(client, server.project);
  return { client, waiting, working, completed, session: { id: "importer", workflow: "bug-investigation" } };
}

async function complete(client: Client, server: Server): Promise<string> {
  const id = await begin(client, "Release 3.9.2: one fix");
  await next(client, id, { output: "The next version is 3.9.2. It touches api alone.", context: { breaking: false, announce: false, packages: ["api"] } });
  await approve(server, id);
  await next(client, id, { output: "Notes: rows with commas are read whole." });
  await next(client, id, { output: "api 3.9.2 is published." });
  await next(client, id, { output: "The milestone is closed." });
  await next(client, id, { answer: { optionId: "confirm" } });
  return id;
}

/** Starts a run of the workflow release. */
export async function begin(client: Client, goal: string): Promise<string> {
  const started = await client.call("workflow_start", { workflowId: "release", goal });
  return String(started["runId"]);
}

async function handleOf(client: Client, runId: string): Promise<string> {
  return String((await client.call("workflow_status", { runId }))["handle"]);
}

/** Hands in what the position of a run asks for. */
export async function next(client: Client, runId: string, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  return client.call("workflow_continue", { handle: await handleOf(client, runId), ...args });
}

/** Answers a gate as a person's browser does. */
export async function approve(server: Server, runId: string, optionId = "confirm") {
  const { cookie, key } = await browserOf(server);
  const response = await fetch(`${server.url}/api/runs/${runId}/answer`, {
    method: "POST", body: JSON.stringify({ optionId, note: "Go." }),
    headers: { Cookie: cookie, "X-Guideway-Key": key, "Content-Type": "application/json", Origin: server.url, "Sec-Fetch-Site": "same-origin" },
  });
  if (!response.ok) throw new Error(`approve: ${await response.text()}`);
}

/** Logs in without a browser. */
async function browserOf(server: Server): Promise<{ cookie: string; key: string }> {
  const page = await fetch(server.link(), { method: "POST", headers: { Origin: server.url, "Sec-Fetch-Site": "same-origin" } });
  const cookie = page.headers.get("Set-Cookie")?.split(";")[0] ?? "";
  const key = /name="guideway-key" content="([^"]+)"/.exec(await page.text())?.[1] ?? "";
  return { cookie, key };
}

async function documents(client: Client, project: string) {
  await client.call("workrail_create_session", {
    workflowId: "bug-investigation", sessionId: "importer", project, initialData: {
      dashboard: { title: "Importer drops rows", subtitle: "Orders of 12 May are missing", status: "in_progress", progress: 64, confidence: 7, currentPhase: "Hypotheses", currentStep: "Rule out the encoding" },
      hypotheses: [
        { id: "h1", description: "Rows with a <b>comma</b> in quotes are cut", status: "active", confidence: 7, evidence: ["line 4,112 of orders.csv", "parser.go:88 splits by comma"] },
        { id: "h2", description: "The file is Latin-1", status: "ruled_out", confidence: 1, evidence: ["file(1) says UTF-8"] },
      ],
      timeline: [{ time: "2026-05-14T09:12:00Z", event: "Reproduced with the file of 12 May" }, { time: "2026-05-14T10:40:00Z", event: "<script>alert(1)</script> is a row, and reads as text" }],
      counts: [{ file: "orders.csv", read: 4112, kept: 4107 }, { file: "lines.csv", read: 9850, kept: 9850 }],
      notes: "The importer reads by line.\nA quoted field may span lines, which the reader does not know.",
      environment: { version: "3.9.1", database: "PostgreSQL 16", replayed: true },
    },
  });
  for (const [id, title, status, progress] of [["auth", "Refactor the auth module", "in_progress", 20], ["queue", "Compare three designs of a queue", "complete", 100], ["flaky", "Find the flaky test", "blocked", 45]] as const) {
    await client.call("workrail_create_session", { workflowId: "coding-task", sessionId: id, project, initialData: { dashboard: { title, status, progress, currentPhase: "Work" }, findings: ["one", "two"] } });
  }
}
