import { mkdirSync, existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { launch, login, type Person } from "./browser";
import { seed, type Seeded } from "./seed";
import { Server } from "./server";

const out = process.env["SHOTS"];
const only = process.env["ONLY"];
const corpus = resolve(import.meta.dirname, "../../../shared/corpus");
const big = join(corpus, "steps/workflows/systematic-bug-investigation-with-loops.json");
const phased = join(corpus, "phases/work-package/work-package.json");
let server: Server, browser: Browser, person: Person, seeded: Seeded;
beforeAll(async () => {
  server = await Server.start([join(import.meta.dirname, "fixtures/release.yaml"), ...[big, phased].filter((f) => existsSync(f))]);
  browser = await launch();
  seeded = await seed(server);
  person = await login(browser, server);
  const dist = process.env["DIST"];
  if (dist !== undefined) {
    await person.context.route("**/assets/*", async (route) => {
      const name = new URL(route.request().url()).pathname;
      const file = join(dist, name);
      if (!existsSync(file)) return route.continue();
      const type = name.endsWith(".js") ? "text/javascript" : name.endsWith(".css") ? "text/css" : "font/woff2";
      return route.fulfill({ body: readFileSync(file), contentType: type });
    });
    await person.context.route((url) => url.origin === server.url && !/^\/(api|assets|login|icon)/.test(url.pathname), async (route) => {
      const got = await route.fetch();
      return route.fulfill({ response: got, body: readFileSync(join(dist, "index.html")) });
    });
  }
});
afterAll(async () => { await browser?.close(); await server?.stop(); });

test.runIf(out !== undefined)("screenshots", async () => {
  mkdirSync(out ?? "", { recursive: true });
  const pages: [string, string][] = [
    ["overview", "/"], ["runs", "/runs"], ["run", `/runs/${seeded.working}`], ["run-context", `/runs/${seeded.working}?tab=context`], ["run-checkpoints", `/runs/${seeded.working}?tab=checkpoints`], ["run-gate", `/runs/${seeded.waiting}`],
    ["run-outputs", `/runs/${seeded.completed}?tab=outputs`],
    ["sessions", "/sessions"], ["session", `/dashboard/${seeded.session.id}`],
    ["workflows", "/workflows"], ["workflow", "/workflows/release"], ["workflow-large", "/workflows/systematic-bug-investigation-with-loops"], ["workflow-phases", "/workflows/work-package"], ["editor", "/workflows/release/edit"], ["editor-new", "/new-workflow"], ["try", "/workflows/release/try"],
  ];
  const sizes = (process.env["SIZES"] ?? "1280-light,1280-dark,390-light,390-dark").split(",");
  for (const [name, path] of pages) {
    if (only !== undefined && !only.split(",").includes(name)) continue;
    for (const size of sizes) {
      const [width, theme] = size.split("-");
      await person.page.setViewportSize({ width: Number(width), height: Number(width) > 600 ? 800 : 844 });
      await person.page.emulateMedia({ colorScheme: theme === "dark" ? "dark" : "light", reducedMotion: "reduce" });
      await person.page.goto(path);
      await person.page.waitForTimeout(Number(process.env["WAIT"] ?? 900));
      await person.page.screenshot({ path: join(out ?? "", `${name}-${size}.png`), fullPage: process.env["FULL"] !== undefined });
    }
  }
  console.log(person.complaints);
  expect(true).toBe(true);
});
