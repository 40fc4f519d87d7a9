import { beforeEach, expect, test, vi } from "vitest";
import { loadOnce } from "./loadPage";

const failing = () => Promise.reject(new TypeError("Failed to fetch dynamically imported module"));
let reloads: number;
let isUp: boolean;

beforeEach(() => {
  reloads = 0;
  isUp = true;
  const kept = new Map<string, string>();
  vi.stubGlobal("sessionStorage", { getItem: (k: string) => kept.get(k) ?? null, setItem: (k: string, v: string) => kept.set(k, v), removeItem: (k: string) => kept.delete(k) });
  vi.stubGlobal("location", { reload: () => reloads++ });
  vi.stubGlobal("fetch", () => (isUp ? Promise.resolve({}) : Promise.reject(new TypeError("Failed to fetch"))));
});

/** Starts a load that may wait forever for the reload. */
async function begin() {
  void loadOnce(failing).catch(() => undefined);
  await new Promise((done) => setImmediate(done));
}

test("a page whose file is gone reloads the tab once, and says so the second time", async () => {
  await begin();
  expect(reloads).toBe(1);
  await expect(loadOnce(failing)).rejects.toMatchObject({ reason: "updated" });
  expect(reloads).toBe(1);
});

test("a page that has loaded allows another reload", async () => {
  await begin();
  expect(await loadOnce(() => Promise.resolve("page"))).toBe("page");
  await begin();
  expect(reloads).toBe(2);
});

test("while the server is away the tab is not reloaded", async () => {
  isUp = false;
  await expect(loadOnce(failing)).rejects.toMatchObject({ reason: "unreachable" });
  expect(reloads).toBe(0);
});
