#!/usr/bin/env node
// Starts the binary of this machine's platform package with what it was given.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const platform = `${process.platform}-${process.arch}`;
const name = `@guideway-dev/guideway-${platform}`;

function binary() {
  const file = process.platform === "win32" ? "guideway.exe" : "guideway";
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    const known = Object.keys(require("../package.json").optionalDependencies);
    const why = known.includes(name)
      ? `The package ${name} is not installed. Install without --omit=optional (or --no-optional), and not from a node_modules of another machine.`
      : `There is no binary for ${platform}; there is one for ${known.map((k) => k.replace("@guideway-dev/guideway-", "")).join(", ")}.`;
    console.error(`guideway: ${why}\nWith Go: go install github.com/guideway-dev/guideway/cmd/guideway@latest`);
    process.exit(1);
  }
}

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit", windowsHide: true });
// A terminal signals the child as well; a client that ends us does not.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (err) => {
  console.error(`guideway: cannot start ${child.spawnfile}: ${err.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + (constants.signals[signal] ?? 0) : (code ?? 1));
});
