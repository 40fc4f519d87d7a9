import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { offered, readTypes } from "./apiTypes";

const types = readTypes(readFileSync(join(import.meta.dirname, "../../../../internal/hooks/sandbox/api.d.ts"), "utf8"));
const names = (...path: string[]) => offered(types, path).map((m) => m.name);

// Completion offers what the sandbox has: it is read out of the declarations that
// the sandbox's own tests hold against it.
test("scripts are offered what the declarations have", () => {
  expect(names()).toEqual(["context", "console", "sleep", "audit", "state", "redact", "namesSecret", "mapStrings", "structuredClone", "sha256", "base64", "atob", "btoa", "queueMicrotask", "TextEncoder", "TextDecoder"]);
  expect(names("context")).toEqual(["request", "response", "error", "progress", "metadata", "variables"]);
  expect(names("context", "request")).toEqual(["method", "params"]);
  expect(names("context", "metadata")).toEqual(["clientId", "clientName", "serverId", "serverName", "run", "workflowId", "nodeId", "startTime", "duration", "error", "shared"]);
  expect(names("context", "metadata", "error")).toEqual(["code", "message"]);
  expect(names("console")).toEqual(["log", "info", "warn", "error", "debug"]);
  expect(names("base64")).toEqual(["encode", "decode", "bytes"]);
  expect(names("state")).toEqual(["client", "upstream", "global"]);
  expect(names("state", "client")).toEqual(["get", "set", "incr"]);
  expect(names("nothing", "here")).toEqual([]);
  expect(offered(types, []).find((m) => m.name === "sleep")?.doc).toBe("Waits for ms milliseconds. The time limit of the script still applies.");
  expect(offered(types, ["context", "request"])[1]).toMatchObject({ type: "any", doc: "For tools/call: the upstream's name of the tool, and the arguments." });
});
