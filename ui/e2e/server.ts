import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const repository = resolve(import.meta.dirname, "../..");

/** The program under test: GUIDEWAY_BIN, or what is built here. */
function program(home: string): string {
  const given = process.env["GUIDEWAY_BIN"];
  if (given !== undefined && given !== "") return given;
  const path = join(home, "guideway");
  execFileSync("go", ["build", "-o", path, "./cmd/guideway"], { cwd: repository, stdio: "inherit", env: { ...process.env, CGO_ENABLED: "0" } });
  return path;
}

function freePort(): Promise<number> {
  return new Promise((done, failed) => {
    const server = createServer();
    server.on("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => (typeof address === "object" && address !== null ? done(address.port) : failed(new Error("no port"))));
    });
  });
}

/** A server of the real program, with a home and a project of its own. */
export class Server {
  readonly url: string;
  readonly token: string;
  readonly project: string;
  private readonly home: string;
  private readonly binary: string;
  private readonly process: ChildProcess;

  private constructor(home: string, binary: string, url: string, process: ChildProcess) {
    this.home = home;
    this.binary = binary;
    this.url = url;
    this.process = process;
    this.project = join(home, "project");
    this.token = readFileSync(join(home, "data/guideway/token"), "utf8").trim();
  }

  /** Starts one; workflows are copied into its project. A server with a gateway is its own upstream "self": a real one, over stdio; more are arguments. */
  static async start(workflows: string[] = [], { gateway = false, more = [] as string[] } = {}): Promise<Server> {
    const home = mkdtempSync(join(tmpdir(), "guideway-ui-"));
    const place = join(home, "project/workflows");
    mkdirSync(place, { recursive: true });
    for (const file of workflows) cpSync(file, join(place, file.split("/").pop() ?? "workflow.json"));
    const binary = program(home);
    const url = `http://127.0.0.1:${await freePort()}`;
    if (gateway) execFileSync(binary, ["upstream", "add", "self", "--", binary, "mcp"], { cwd: join(home, "project"), env: environment(home) });
    const child = spawn(binary, ["serve", "--listen", new URL(url).host, ...(gateway ? ["--toolsets", "steps,runs,sessions,context,gateway"] : []), ...more], { cwd: join(home, "project"), env: environment(home), stdio: ["ignore", "ignore", "pipe"] });
    let log = "";
    child.stderr.on("data", (text: Buffer) => (log += text.toString()));
    for (let tries = 0; ; tries++) {
      if (child.exitCode !== null || tries > 200) throw new Error(`the server did not start: ${log}`);
      const alive = await fetch(`${url}/api/health`).then((r) => r.ok, () => false);
      if (alive && existsSync(join(home, "data/guideway/token"))) return new Server(home, binary, url, child);
      await new Promise((go) => setTimeout(go, 50));
    }
  }

  /** A file of its home. */
  file(path: string): string {
    return join(this.home, path);
  }

  /** A link that logs a browser in. The command wants a terminal. */
  link(): string {
    const said = execFileSync("script", ["-qec", `${this.binary} open`, "/dev/null"], { cwd: this.project, env: environment(this.home), encoding: "utf8" });
    const found = /http:\S+/.exec(said);
    if (found === null) throw new Error(`no link in ${said}`);
    return found[0];
  }

  async stop() {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGTERM");
    await ended;
    rmSync(this.home, { recursive: true, force: true });
  }
}

function environment(home: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"], HOME: home, XDG_DATA_HOME: join(home, "data"), XDG_CONFIG_HOME: join(home, "config"),
    XDG_STATE_HOME: join(home, "state"), XDG_CACHE_HOME: join(home, "cache"),
  };
}
