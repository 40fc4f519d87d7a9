import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { launch, login, type Person } from "./browser";
import { Client } from "./mcp";
import { Server } from "./server";

/** What the tests of a file share: a server, a person who is logged in, and an agent's client. */
export interface Setup {
  server: Server;
  browser: Browser;
  person: Person;
  client: Client;
}

/** Starts a server with workflows before the tests of a file, and stops it after them. The
 * members of the result are set when the first test runs. */
export function setUp(workflows: string[]): Setup {
  const setup = {} as Setup;
  beforeAll(async () => {
    setup.server = await Server.start(workflows);
    setup.browser = await launch();
    setup.client = await Client.connect(setup.server.url, setup.server.token);
    setup.person = await login(setup.browser, setup.server);
  });
  afterAll(async () => {
    await setup.browser?.close();
    await setup.server?.stop();
  });
  return setup;
}
