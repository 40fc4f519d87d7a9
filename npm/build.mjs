#!/usr/bin/env node
// Makes the npm packages of a release: one for each platform with its binary, and
// the one that people install, which asks npm for that of their machine.
//
//   node npm/build.mjs --version 1.2.3 --out DIR linux-x64=PATH darwin-arm64=PATH ...
//   node npm/build.mjs --version 1.2.3 --out DIR --dist dist    # of goreleaser
//
// DIR has a folder for each package then: npm publish DIR/*, the platforms first.
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { version: { type: "string" }, out: { type: "string" }, dist: { type: "string" } },
});
const systems = { linux: "linux", darwin: "darwin", windows: "win32" };
const processors = { amd64: "x64", arm64: "arm64" };

function fail(why) {
  console.error(`npm/build.mjs: ${why}`);
  process.exit(2);
}

// binaries gives [platform, path] pairs.
function binaries() {
  if (!values.dist) return positionals.map((p) => p.split(/=(.*)/s).slice(0, 2));
  const artifacts = JSON.parse(readFileSync(join(values.dist, "artifacts.json"), "utf8"));
  return artifacts
    .filter((a) => a.type === "Binary")
    .map((a) => [`${systems[a.goos]}-${processors[a.goarch]}`, a.path]);
}

if (!values.version || !values.out) fail("--version and --out are needed");
const version = values.version.replace(/^v/, "");
const list = binaries();
if (list.length === 0) fail("no binary was named");

const main = JSON.parse(readFileSync(join(here, "guideway/package.json"), "utf8"));
const license = join(here, "../LICENSE");
for (const [platform, path] of list) {
  const [os, cpu] = platform.split("-");
  if (!Object.values(systems).includes(os) || !Object.values(processors).includes(cpu) || !path) {
    fail(`${platform}=${path} is not PLATFORM=PATH with a platform such as linux-x64`);
  }
  const name = `${main.name}-${platform}`;
  const dir = join(values.out, `guideway-${platform}`);
  const file = os === "win32" ? "guideway.exe" : "guideway";
  mkdirSync(join(dir, "bin"), { recursive: true });
  copyFileSync(path, join(dir, "bin", file));
  chmodSync(join(dir, "bin", file), 0o755);
  copyFileSync(license, join(dir, "LICENSE"));
  const { license: licence, homepage, repository } = main;
  const pack = {
    name, version, description: `The binary of Guideway for ${platform}`,
    license: licence, homepage, repository, os: [os], cpu: [cpu], files: ["bin", "LICENSE"], preferUnplugged: true,
  };
  writeFileSync(join(dir, "package.json"), `${JSON.stringify(pack, null, 2)}\n`);
  main.optionalDependencies[name] = version;
}
main.version = version;
const dir = join(values.out, "guideway");
cpSync(join(here, "guideway"), dir, { recursive: true });
copyFileSync(license, join(dir, "LICENSE"));
writeFileSync(join(dir, "package.json"), `${JSON.stringify(main, null, 2)}\n`);
console.log(readdirSync(values.out).join("\n"));
