import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import type { Server } from "./server";

/** Debian's Chromium; no browser is ever downloaded. */
const chromiumPath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Whether there is a browser to test with. */
export function hasBrowser(): boolean {
  return existsSync(chromiumPath);
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** A browser that is logged in, and what its pages complain of. */
export interface Person {
  context: BrowserContext;
  page: Page;
  /** Errors of scripts, and what the content security policy has stopped. */
  complaints: string[];
}

/** Logs a person in by the link that guideway open prints. */
export async function login(browser: Browser, server: Server): Promise<Person> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: server.url, reducedMotion: "reduce" });
  if (process.env["GUIDEWAY_UI"] !== undefined) await serveFrom(context, process.env["GUIDEWAY_UI"], server.url);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(`${message.text()} (${message.location().url})`);
  });
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (origin !== server.url && request.url().startsWith("http")) complaints.push(`a request to ${request.url()}`);
  });
  await page.goto(server.link());
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  return { context, page, complaints };
}

const types: Record<string, string> = { ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2" };

/** Has a build on the disk stand in for the one in the program, for work on the pages alone. */
async function serveFrom(context: BrowserContext, dist: string, origin: string) {
  await context.route(`${origin}/assets/*`, (route) => {
    const name = new URL(route.request().url()).pathname;
    const file = join(dist, name);
    return existsSync(file) ? route.fulfill({ body: readFileSync(file), contentType: types[extname(name)] ?? "text/plain" }) : route.continue();
  });
  await context.route((url) => url.origin === origin && !/^\/(api|assets|login|icon)/.test(url.pathname), async (route) => {
    const response = await route.fetch();
    return route.fulfill(response.ok() ? { response, body: readFileSync(join(dist, "index.html")) } : { response });
  });
}
