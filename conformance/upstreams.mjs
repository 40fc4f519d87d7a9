// The rounds of conformance/upstreams, which starts this and says what is where by
// the environment. What is asked stands in calls.json beside the servers.
import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isDeepStrictEqual, promisify } from "node:util";
import { pathToFileURL } from "node:url";

const { REAL, INSPECTOR, GUIDEWAY, WORK } = process.env;
const run = promisify(execFile);
const from = createRequire(join(REAL, "package.json"));
const load = async (name) => import(pathToFileURL(from.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

// plan reads what is asked, for one directory.
function plan(dir) {
  const text = readFileSync(join(REAL, "calls.json"), "utf8");
  return JSON.parse(text.replaceAll("$DIR", dir).replaceAll("$URL", web));
}

const command = (server) => [join(REAL, "node_modules", server.package, "dist", "index.js"), ...server.args];

// directory gives a new one by its real name, which servers answer with.
const directory = () => realpathSync(mkdtempSync(join(WORK, "dir-")));

const listener = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => { body += part; });
  request.on("end", () => response.end(`${request.method} ${body}`));
});
await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
const web = `http://127.0.0.1:${listener.address().port}/`;

// gateway starts guideway in front of all servers; the answer says where it is.
async function gateway(dir) {
  const upstreams = {};
  for (const [name, server] of Object.entries(plan(dir))) {
    upstreams[name] = { command: process.execPath, args: command(server), env: server.env ?? {} };
  }
  const home = directory(); // of its own: no settings and no data of this user's
  mkdirSync(join(home, ".config", "guideway"), { recursive: true });
  writeFileSync(join(home, ".config", "guideway", "guideway.json"), JSON.stringify({ toolsets: ["gateway"], upstreams }));
  const child = spawn(GUIDEWAY, ["serve", "--listen", "127.0.0.1:0", "--token-file", join(home, "token")],
    { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: home } });
  let said = "";
  const url = await new Promise((resolve, reject) => {
    child.on("exit", () => reject(new Error(`guideway has ended: ${said}`)));
    child.stderr.on("data", (part) => {
      said += part;
      const found = /^ *MCP +(\S+)$/m.exec(said);
      if (found) resolve(found[1]);
    });
  });
  return { url, token: readFileSync(join(home, "token"), "utf8").trim(), end: () => { child.removeAllListeners("exit"); child.kill(); } };
}

// heard notes what a client was asked and told, for as long as a question is open.
const heard = (client) => {
  const all = { asked: [], updated: [], logs: [] };
  client.heard = all;
  return all;
};

// asked is a question as the server has asked it.
const asked = ({ _meta, includeContext, message, ...rest }) =>
  ({ ...rest, ...(message === undefined ? {} : { message: message.replace(/^The MCP server "[^"]*" asks: /, "") }) });

// connect is a client that answers whatever it is asked.
async function connect(transport, mode, dir) {
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: "test", version: "1" }, { capabilities, versionNegotiation: { mode } });
  const note = heard(client);
  client.setRequestHandler("elicitation/create", (request) => {
    note.asked.push(asked(request.params));
    return { action: "accept", content: { check: true, name: "Ann" } };
  });
  client.setRequestHandler("sampling/createMessage", (request) => {
    note.asked.push(asked(request.params));
    return { model: "none", role: "assistant", content: { type: "text", text: "said" } };
  });
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => { note.updated.push(params.uri); });
  client.setNotificationHandler("notifications/message", ({ params }) => { note.logs.push(params.data); });
  client.setRequestHandler("roots/list", () => ({ roots: [{ uri: `file://${dir}`, name: "root" }] }));
  await client.connect(transport);
  return client;
}

// plain is an answer as it is compared: without what is of the era, the prefix, the
// place or the time.
function plain(answer, prefix, dir) {
  const { _meta, resultType, ttlMs, cacheScope, ...rest } = answer;
  return JSON.stringify(rest).replaceAll(prefix || "\u0000", "").replaceAll(dir, "$DIR")
    .replaceAll(/\b\d{1,2}:\d{2}:\d{2}( [AP]M)?/g, "")
    .replaceAll(/\\"date\\": \\"[^,]*|"blob":"UmVz[^"]*"|(created|modified|accessed): [^\\]*/g, "");
}

// Where a call fails, the words count and not the number or class.
const failure = (error) => ({ error: String(error.message).replace(/^(MCP error -?\d+: )+/, "") });

// ask gives the answers to all questions, by the question.
async function ask(client, server, prefix, dir) {
  const answers = {};
  const note = async (question, work) => {
    answers[question.replaceAll(dir, "$DIR")] = plain(await work().catch(failure), prefix, dir);
  };
  for (const { name, arguments: args, progress } of server.tools) {
    const steps = [];
    client.heard.asked.length = 0;
    const question = `tool ${name} ${JSON.stringify(args)}`;
    await note(question, () =>
      client.callTool({ name: prefix + name, arguments: args }, progress ? { onprogress: (step) => { steps.push(step); } } : {}));
    if (progress) answers[`progress of ${name}`] = JSON.stringify(steps.slice(0, progress - 1)); // the last one may come with the answer
    if (client.heard.asked.length) answers[`asked by ${name}`] = plain({ asked: client.heard.asked }, prefix, dir);
  }
  await live(client, server, prefix, answers);
  for (const { name, arguments: args } of server.prompts ?? []) {
    await note(`prompt ${name}`, () => client.getPrompt({ name: prefix + name, arguments: args }));
  }
  for (const uri of server.resources ?? []) await note(`resource ${uri}`, () => client.readResource({ uri }));
  for (const params of server.completions ?? []) {
    const ref = params.ref.name ? { ...params.ref, name: prefix + params.ref.name } : params.ref;
    await note(`completion ${JSON.stringify(params)}`, () => client.complete({ ...params, ref }));
  }
  return answers;
}

// live has a server tell what it tells by itself, and takes a call back.
async function live(client, server, prefix, answers) {
  const until = async (holds, work = async () => {}) => {
    for (let tries = 0; tries < 2000 && !holds(); tries++) {
      await work();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return holds();
  };
  const toggle = (name) => client.callTool({ name: prefix + name, arguments: {} });
  const legacy = client.getNegotiatedProtocolVersion() < "2026-07-28";
  if (server.follow) {
    const { uri, tool } = server.follow;
    const listening = legacy ? await client.subscribeResource({ uri }) : await client.listen({ resourceSubscriptions: [uri] });
    answers[`follow ${uri}`] = await until(() => client.heard.updated.includes(uri), async () => { await toggle(tool); await toggle(tool); });
    await (legacy ? client.unsubscribeResource({ uri }) : listening.close());
  }
  if (server.logs && legacy) { // newer ones ask for logs call by call
    await client.setLoggingLevel("debug");
    client.heard.logs.length = 0;
    await toggle(server.logs);
    if (!await until(() => client.heard.logs.length > 0)) answers.logs = "none";
    await toggle(server.logs);
  }
  if (server.cancel) {
    const stop = new AbortController();
    const { name, arguments: args } = server.cancel;
    answers.cancel = await client.callTool({ name: prefix + name, arguments: args }, { signal: stop.signal, onprogress: () => stop.abort("enough") })
      .then(() => "answered", (error) => String(error.message ?? error).replace(/^.*enough.*$/, "enough"));
  }
}

// lists are what is offered, by kind and name.
async function lists(client, server, prefix) {
  const offered = {};
  const note = (kind, entries) => {
    for (const { execution, ...entry } of entries) { // execution is of the older era alone
      if (entry.name.startsWith(prefix)) offered[`${kind} ${entry.name.slice(prefix.length)}`] = { ...entry, name: entry.name.slice(prefix.length) };
    }
  };
  const can = client.getServerCapabilities();
  note("tool", (await client.listTools()).tools);
  if (can.prompts) note("prompt", (await client.listPrompts()).prompts);
  if (can.resources && server.scheme) {
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    for (const entry of [...resources, ...resourceTemplates]) {
      const uri = entry.uri ?? entry.uriTemplate;
      if (uri.startsWith(server.scheme)) offered[`resource ${uri}`] = entry;
    }
  }
  return offered;
}

// inspect runs one command of the Inspector.
async function inspect(target, era, ...args) {
  const all = [INSPECTOR, "--cli", ...target, "--protocol-era", era, "--format", "json", "-q", ...args];
  const { stdout } = await run(process.execPath, all, { maxBuffer: 16 << 20, timeout: 60_000 })
    .catch((error) => ({ stdout: error.stdout || JSON.stringify({ result: failure(new Error(String(error.stderr))) }) }));
  return JSON.parse(stdout).result;
}

let failed = 0;
function report(round, want, got) {
  const wrong = [...new Set([...Object.keys(want), ...Object.keys(got)])].filter((key) => !isDeepStrictEqual(want[key], got[key]));
  if (wrong.length === 0) {
    console.log(`✓ ${round}: ${Object.keys(want).length} the same`);
    return;
  }
  failed++;
  console.log(`✗ ${round}: ${wrong.length} of ${Object.keys(want).length} differ`);
  for (const key of wrong) {
    console.log(`    ${key}\n      directly: ${JSON.stringify(want[key])?.slice(0, 600)}\n      through:  ${JSON.stringify(got[key])?.slice(0, 600)}`);
  }
}

const dir = directory();
const through = await gateway(dir);
const header = { Authorization: `Bearer ${through.token}` };

for (const name of Object.keys(plan(dir)).filter((each) => !process.env.ONLY || each === process.env.ONLY)) {
  const own = directory();
  const server = plan(own)[name];
  const client = await connect(
    new StdioClientTransport({ command: process.execPath, args: command(server), env: { ...process.env, ...server.env }, stderr: "ignore" }), "legacy", own);
  const offered = await lists(client, server, "");
  const want = await ask(client, server, "", own);
  const version = client.getNegotiatedProtocolVersion();
  await client.close();
  for (const mode of ["legacy", { pin: "2026-07-28" }]) {
    const era = mode.pin ? "modern" : "legacy";
    const place = directory(); // what the server keeps is new for each
    const gate = await gateway(place);
    const at = new StreamableHTTPClientTransport(new URL(gate.url), { requestInit: { headers: { Authorization: `Bearer ${gate.token}` } } });
    const far = await connect(at, mode, place);
    report(`TypeScript client, ${era}, ${name} of ${version}, what is offered`, offered, await lists(far, server, `${name}__`));
    report(`TypeScript client, ${era}, ${name} of ${version}, what is answered`, want, await ask(far, plan(place)[name], `${name}__`, place));
    await far.close();
    gate.end();
  }
  await inspectorRound(name, server, own);
}

// inspectorRound calls one tool that changes nothing, and lists all.
async function inspectorRound(name, server, own) {
  const straight = ["-e", `MEMORY_FILE_PATH=${join(own, "inspector.json")}`, process.execPath, ...command(server)];
  const far = ["--server-url", through.url, "--transport", "http", "--header", `Authorization: ${header.Authorization}`];
  const tool = { everything: ["get-sum", { a: 2, b: 3 }], filesystem: ["list_allowed_directories", {}], memory: ["read_graph", {}], curl: ["curl", { url: "none" }] }[name];
  const tools = (result, prefix) => Object.fromEntries(result.tools.filter((t) => t.name.startsWith(prefix)).map((t) => [t.name.slice(prefix.length), t.description]));
  // entries are those of a list that are the server's; what the era or the client adds to them is left out.
  const entries = (key, id) => (result, prefix) => Object.fromEntries(result[key]
    .filter((entry) => id !== "name" || entry.name.startsWith(prefix))
    .map((entry) => [entry[id].replace(prefix, ""), JSON.stringify({ ...entry, name: entry.name.replace(prefix, "") })]));
  const answer = (result, prefix) => ({ is: plain(result, prefix, prefix ? dir : own) });
  const asks = {
    call: [(p) => ["--method", "tools/call", "--tool-name", p + tool[0], "--tool-args-json", JSON.stringify(tool[1])], answer],
    tools: [() => ["--method", "tools/list"], tools],
  };
  if (server.prompts) {
    const prompt = server.prompts.find((each) => each.arguments);
    const args = Object.entries(prompt.arguments).map(([key, value]) => `${key}=${value}`);
    asks.prompts = [() => ["--method", "prompts/list"], entries("prompts", "name")];
    asks.prompt = [(p) => ["--method", "prompts/get", "--prompt-name", p + prompt.name, "--prompt-args", ...args], answer];
  }
  if (server.completions) {
    asks.resources = [() => ["--method", "resources/list"], entries("resources", "uri")];
    asks.templates = [() => ["--method", "resources/templates/list"], entries("resourceTemplates", "uriTemplate")];
    asks.resource = [() => ["--method", "resources/read", "--uri", server.resources[0]], answer];
  }
  // all runs every question at once: each is a program of its own that starts slowly.
  const all = async (target, era, prefix) => Object.fromEntries((await Promise.all(Object.entries(asks).map(async ([what, [args, take]]) =>
    Object.entries(take(await inspect(target, era, ...args(prefix)), prefix)).map(([key, value]) => [`${what} ${key}`, value])))).flat());
  const want = await all(straight, "legacy", "");
  for (const era of ["legacy", "modern"]) {
    const got = await all(far, era, `${name}__`);
    const others = Object.keys(got).filter((key) => /^(resources|templates) /.test(key) && !(key in want)); // of other servers
    report(`Inspector, ${era}, ${name}`, want, Object.fromEntries(Object.entries(got).filter(([key]) => !others.includes(key))));
  }
}

through.end();
listener.close();
console.log(failed ? `upstreams: ${failed} rounds FAILED` : "upstreams: all rounds passed");
process.exitCode = failed ? 1 : 0;
