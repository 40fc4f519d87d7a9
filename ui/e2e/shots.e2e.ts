import { cpSync, existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, login, type Person } from "./browser";
import { equip, withGateway, type Equipped } from "./equip";
import { guard, release } from "./fixtures";
import { seed, type Seeded } from "./seed";
import { Server } from "./server";

// Pictures of each page, light and dark, wide and narrow, into the directory that
// GUIDEWAY_SHOTS names: npm run shots. People look at them; no test does.
const out = process.env["GUIDEWAY_SHOTS"];
const corpus = resolve(import.meta.dirname, "../../../shared/corpus");
const large = [
  { name: "large-steps", id: "systematic-bug-investigation-with-loops", file: join(corpus, "steps/workflows/systematic-bug-investigation-with-loops.json") },
  { name: "large-phases", id: "work-package", file: join(corpus, "phases/work-package/work-package.json") },
].filter(({ file }) => existsSync(file));
const looks = ["1280-light", "1280-dark", "390-light", "390-dark"];

let server: Server | undefined;
let browser: Browser | undefined;
let person: Person;
let data: Seeded & Equipped;

beforeAll(async () => {
  if (out === undefined) return;
  server = await Server.start([release, ...large.map(({ file }) => file)], withGateway);
  mkdirSync(join(server.project, "workflows/hooks"), { recursive: true });
  cpSync(guard, join(server.project, "workflows/hooks/guard.yaml"));
  browser = await launch();
  person = await login(browser, server);
  data = { ...(await seed(server)), ...(await equip(server, person.page)) };
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const pages: Record<string, (d: Seeded & Equipped) => string> = {
  overview: () => "/",
  runs: () => "/runs",
  run: (d) => `/runs/${d.working}`,
  "run-gate": (d) => `/runs/${d.waiting}`,
  "run-outputs": (d) => `/runs/${d.completed}?tab=outputs`,
  "run-context": (d) => `/runs/${d.working}?tab=context`,
  "run-checkpoints": (d) => `/runs/${d.working}?tab=checkpoints`,
  sessions: () => "/sessions",
  session: (d) => `/dashboard/${d.session.id}?workflow=${d.session.workflow}`,
  workflows: () => "/workflows",
  workflow: () => "/workflows/release",
  editor: () => "/workflows/release/edit",
  try: () => "/workflows/release/try",
  hooks: () => "/hooks",
  "hook-editor": () => "/hooks/guard?node=check",
  "new-hook": () => "/new-hook",
  gateway: () => "/gateway",
  upstream: () => "/gateway/notes",
  "new-upstream": () => "/new-upstream",
  tokens: () => "/tokens",
  requests: () => "/requests",
  request: (d) => `/requests/${d.request}`,
  machines: () => "/machines",
  machine: () => "/machines/code-and-review",
  "machine-run": (d) => `/machine-runs/${d.asking}`,
  "machine-run-ended": (d) => `/machine-runs/${d.ended}?tab=events`,
};

test.runIf(out !== undefined)("pictures of each page", async () => {
  const dir = out ?? "";
  mkdirSync(dir, { recursive: true });
  const { page } = person;
  const headers = { Authorization: `Bearer ${server?.token ?? ""}` };
  await expect.poll(async () => (await fetch(`${server?.url ?? ""}/api/hooks/guard`, { headers })).status, { timeout: 20_000 }).toBe(200); // its file was put there while the server runs
  const more = Object.fromEntries(large.map(({ name, id }) => [name, () => `/workflows/${id}`]));
  const wanted = process.env["GUIDEWAY_ONLY"]?.split(",");
  for (const [name, path] of Object.entries({ ...pages, ...more })) {
    if (wanted !== undefined && !wanted.includes(name)) continue;
    for (const look of looks) {
      const [width, colorScheme] = look.split("-");
      await page.setViewportSize({ width: Number(width), height: width === "390" ? 844 : 800 });
      await page.emulateMedia({ colorScheme: colorScheme === "dark" ? "dark" : "light" });
      await page.goto(path(data));
      await page.waitForFunction(() => document.querySelector("h1") !== null && document.querySelector(".skeleton") === null);
      if (name === "overview" || name === "run-gate") await page.locator(".handed-in").first().waitFor();
      if (name === "editor") await page.getByText("No diagnostics").waitFor();
      if (name === "hook-editor" || name === "new-hook") await page.locator(".react-flow__edge").last().waitFor({ state: "attached" });
      await page.evaluate(() => document.fonts.ready);
      await page.evaluate((home) => { // pictures are of the project alone, not of where they were taken
        for (const cell of document.querySelectorAll(".sources td, .machine .mono")) cell.textContent = cell.textContent?.replace(home, "/home/ann") ?? "";
      }, server?.project.replace(/.project$/, "") ?? "");
      await page.screenshot({ path: join(dir, `${name}-${look}.png`), animations: "disabled" });
    }
  }
  expect(person.complaints).toEqual([]);
}, 600_000);
