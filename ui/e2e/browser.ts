import { existsSync } from "node:fs";
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
