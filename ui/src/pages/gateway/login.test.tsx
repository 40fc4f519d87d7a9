// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { UpstreamPage } from "./UpstreamPage";

vi.hoisted(() => {
  const Absolute = class extends Request { // outside a browser, a request needs a host
    constructor(input: string, init?: RequestInit) { super(new URL(input, "http://127.0.0.1"), init); }
  };
  vi.stubGlobal("Request", Absolute);
});

let root: Root;
let page: HTMLElement;

beforeEach(() => {
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  page = document.body.appendChild(document.createElement("main"));
  root = createRoot(page);
});

afterEach(() => {
  act(() => root.unmount());
  page.remove();
  vi.unstubAllGlobals();
});

const wiki = {
  success: true, name: "wiki", reached: "http", where: "https://example.com/mcp", tools: -1, waiting: 0, state: "failed", base: "1",
  loginPossible: true, config: {}, origin: "guideway.json", offered: [], prompts: [], resources: 0, notes: [],
};
const loginURL = "https://auth.example.com/authorize?state=s";

/** Shows the page of an upstream to someone with the rights, and returns the paths of the changes. */
async function show(upstream: object, rights: string[]) {
  const changes: string[] = [];
  vi.stubGlobal("fetch", (request: Request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "GET") changes.push(`${request.method} ${pathname}`);
    const answer = pathname.endsWith("/login") ? { success: true, url: loginURL, issuer: "https://auth.example.com" }
      : pathname.endsWith("/waiting") ? { success: true, waiting: [] } : pathname === "/api/me" ? { success: true, name: "ann", rights } : upstream;
    return Promise.resolve(new Response(JSON.stringify(answer), { headers: { "Content-Type": "application/json" } }));
  });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  act(() => root.render(<QueryClientProvider client={queries}><UpstreamPage id="wiki" /></QueryClientProvider>));
  await vi.waitFor(() => act(async () => { await Promise.resolve(); expect(page.querySelector("h1")?.textContent).toBe("wiki"); expect(queries.isFetching()).toBe(0); }));
  return changes;
}

const button = () => [...page.querySelectorAll("button")].find((b) => b.textContent.startsWith("Log in"));

test("the button starts a login and leads to the authorization server by a link", async () => {
  const changes = await show(wiki, ["read", "login"]);
  act(() => button()?.click());
  const link = await vi.waitFor(() => act(async () => { await Promise.resolve(); return page.querySelector<HTMLAnchorElement>("[role=status] a") ?? expect.fail(page.innerHTML); }));
  expect(changes).toEqual(["POST /api/upstreams/wiki/login"]);
  expect([link.getAttribute("href"), link.rel, link.textContent]).toEqual([loginURL, "noreferrer", "Log in at https://auth.example.com"]);
});

test("without the right to log in the button is disabled", async () => {
  await show(wiki, ["read", "manage"]);
  expect(button()?.disabled).toBe(true);
});

test("an upstream without logins has no button", async () => {
  await show({ ...wiki, loginPossible: undefined }, ["read", "manage"]);
  expect(button()).toBeUndefined();
});

test("a login can be ended, and only by its user", async () => {
  const login = { issuer: "https://auth.example.com", client: "c", since: "2026-01-01T00:00:00Z", renews: true };
  const changes = await show({ ...wiki, login }, ["read", "login"]);
  const logOut = [...page.querySelectorAll("button")].find((b) => b.textContent === "Log out");
  act(() => logOut?.click());
  await vi.waitFor(() => act(async () => { await Promise.resolve(); expect(changes).toEqual(["DELETE /api/upstreams/wiki/login"]); }));
});
