import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openStream } from "./stream";

// A server that requires the page's key, as ours does, and ends each stream after one event.
let requests: IncomingMessage["headers"][];
let stop: () => Promise<unknown>;
let url: string;

const answer = (request: IncomingMessage, response: ServerResponse) => {
  requests.push(request.headers);
  if (request.headers["x-guideway-key"] !== "the key") return response.writeHead(401, { "Content-Type": "application/json" }).end("{}");
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  return response.end(`retry: 1\n\nevent: change\nid: ${40 + requests.length}\ndata: {"n":${requests.length}}\n\n`);
};

beforeEach(async () => {
  requests = [];
  const server = createServer(answer);
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/events`;
  stop = () => new Promise((done) => server.close(done));
});

afterEach(() => stop());

function keepKey(key: string | null) {
  vi.stubGlobal("localStorage", { getItem: (name: string) => (name === "guideway-key" ? key : null) });
}

test.each([null, "another key"])("without the page's key a stream has no event and is not opened again (%s)", async (key) => {
  keepKey(key);
  const source = openStream(url);
  const seen = vi.fn();
  source.addEventListener("change", seen);
  await new Promise((failed) => source.addEventListener("error", failed));
  expect([source.readyState, seen.mock.calls.length, requests.length]).toEqual([source.CLOSED, 0, 1]);
});

test("a stream sends the page's key, and continues after the last event when the connection ends", async () => {
  keepKey("the key");
  const source = openStream(url);
  const seen: string[] = [];
  await new Promise<void>((enough) => source.addEventListener("change", (e) => {
    seen.push(`${e.lastEventId} ${String(e.data)}`);
    if (seen.length === 3) enough();
  }));
  source.close();
  expect(seen).toEqual(['41 {"n":1}', '42 {"n":2}', '43 {"n":3}']);
  expect(requests.slice(0, 3).map((h) => [h["x-guideway-key"], h["last-event-id"]])).toEqual([["the key", undefined], ["the key", "41"], ["the key", "42"]]);
});
