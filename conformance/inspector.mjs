// The rounds of conformance/inspector, which starts this and says what is where
// by the environment.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const { INSPECTOR, GUIDEWAY, GUIDEWAY_URL, TOKEN } = process.env;
const run = promisify(execFile);

// What a finished step leaves in the context. A list of two slices sends the
// walk through the loop's body twice.
const workflowId = "coding-task";
const sets = {
  "frame-task": { size: "medium", touchesContract: false },
  "plan-slices": {
    slices: [
      { id: "s1", title: "Parse the header", files: ["a.go"], check: "TestParse passes" },
      { id: "s2", title: "Wait as told", files: ["b.go"], check: "TestWait passes" },
    ],
  },
  "slice-build": { sliceGreen: true },
  "self-review": { openDefects: 0 },
};
const path = [
  "frame-task", "map-code", "plan-slices",
  "slice-check", "slice-build", "slice-check", "slice-build",
  "self-review", "hand-over",
];

const targets = {
  stdio: [GUIDEWAY, "mcp"],
  http: ["--server-url", GUIDEWAY_URL, "--transport", "http", "--header", `Authorization: Bearer ${TOKEN}`],
};

// inspect runs one command of the Inspector; a code other than 0 throws.
async function inspect(target, era, ...args) {
  const all = [INSPECTOR, "--cli", ...targets[target], "--protocol-era", era, "--format", "json", "-q", ...args];
  try {
    return await run(process.execPath, all, { maxBuffer: 16 << 20, timeout: 60_000 });
  } catch (error) {
    const said = `${error.stdout ?? ""}${error.stderr ?? ""}`.replaceAll(TOKEN, "TOKEN").slice(0, 2000);
    throw new Error(`${args.slice(0, 4).join(" ")}: exit code ${error.code}: ${said}`);
  }
}

async function call(target, era, tool, args) {
  const { stdout } = await inspect(target, era,
    "--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args));
  return JSON.parse(stdout).result.structuredContent;
}

async function listTools(target, era) {
  const { stdout, stderr } = await inspect(target, era, "--method", "tools/list", "--strict");
  const names = JSON.parse(stdout).result.tools.map((tool) => tool.name);
  if (!names.includes("workflow_list") || !names.includes("workflow_next")) {
    throw new Error(`tools/list has no workflow tools: ${names}`);
  }
  return `${names.length} tools, strict: ${stderr.trim().split("\n").at(-1) || "nothing found"}`;
}

async function walk(target, era) {
  const { workflows } = await call(target, era, "workflow_list", {});
  if (!workflows.some((workflow) => workflow.id === workflowId)) {
    throw new Error(`workflow_list does not have ${workflowId}`);
  }
  const completedSteps = [];
  const visited = [];
  let context = {};
  for (let calls = 0; calls < 40; calls++) {
    const answer = await call(target, era, "workflow_next", { workflowId, completedSteps, context });
    context = { ...context, ...answer.context };
    if (answer.isComplete) {
      if (visited.join() !== path.join()) {
        throw new Error(`the walk went ${visited}, want ${path}`);
      }
      return `${visited.length} steps, the loop ${visited.filter((id) => id === "slice-build").length} times, isComplete: true`;
    }
    const { id } = answer.step;
    visited.push(id);
    completedSteps.push(id);
    Object.assign(context, sets[id]);
  }
  throw new Error(`no end after 40 calls: ${visited}`);
}

let failed = 0;
for (const target of Object.keys(targets)) {
  for (const era of ["legacy", "modern"]) {
    for (const [name, round] of Object.entries({ "tools/list": listTools, [`walk ${workflowId}`]: walk })) {
      try {
        console.log(`✓ inspector, ${target}, ${era}, ${name}: ${await round(target, era)}`);
      } catch (error) {
        failed++;
        console.log(`✗ inspector, ${target}, ${era}, ${name}: ${error.message}`);
      }
    }
  }
}
console.log(failed ? `inspector: ${failed} rounds FAILED` : "inspector: all rounds passed");
process.exitCode = failed ? 1 : 0;
