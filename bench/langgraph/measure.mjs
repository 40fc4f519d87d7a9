// Saves the contexts of a file by LangGraph's SQLite checkpointer and loads them
// again:
//
//   node measure.mjs DIRECTORY FILE SYNCHRONOUS
//
// A line of the file is {"thread": …, "context": …}. SYNCHRONOUS 2 makes commits wait
// for the disk; 1 is the default of the driver. It prints one JSON object:
// milliseconds of each save, of a save's CPU time, of each load of the newest and of any checkpoint, and
// the bytes of all files in the directory afterwards.
import { createReadStream, readdirSync, statSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { uuid6 } from "@langchain/langgraph-checkpoint";

const [dir, file, durability] = process.argv.slice(2);
const saver = SqliteSaver.fromConnString(join(dir, "langgraph.db"));
saver.setup();
if (durability === "2") saver.db.pragma("synchronous = FULL");
const saves = [];
const newest = [];
const any = [];
const places = [];
const last = new Map();

async function timed(list, call) {
  const start = performance.now();
  const result = await call();
  list.push(performance.now() - start);
  return result;
}

let step = 0;
let processor = 0;
for await (const line of createInterface({ input: createReadStream(file) })) {
  const { thread, context } = JSON.parse(line);
  const versions = Object.fromEntries(Object.keys(context).map((key) => [key, step + 1]));
  const checkpoint = {
    v: 4, id: uuid6(step), ts: new Date().toISOString(),
    channel_values: context, channel_versions: versions, versions_seen: {},
  };
  const config = { configurable: { thread_id: thread, checkpoint_ns: "", checkpoint_id: last.get(thread) } };
  const metadata = { source: "loop", step, parents: {} };
  const start = process.cpuUsage();
  await timed(saves, () => saver.put(config, checkpoint, metadata, versions));
  const used = process.cpuUsage(start);
  processor += (used.user + used.system) / 1000;
  last.set(thread, checkpoint.id);
  places.push({ thread_id: thread, checkpoint_ns: "", checkpoint_id: checkpoint.id });
  step++;
}
for (let i = 0; i < 200; i++) {
  const { thread_id } = places[places.length - 1];
  const found = await timed(newest, () => saver.getTuple({ configurable: { thread_id } }));
  if (found?.checkpoint.id !== last.get(thread_id)) throw new Error("the newest checkpoint is another one");
}
for (let i = 0; i < 200; i++) {
  const place = places[(i * 37) % places.length];
  const found = await timed(any, () => saver.getTuple({ configurable: place }));
  if (found?.checkpoint.id !== place.checkpoint_id) throw new Error("a checkpoint is another one");
}
const synchronous = saver.db.pragma("synchronous", { simple: true });
saver.db.close();
const bytes = readdirSync(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
const { version } = JSON.parse(readFileSync(new URL("./node_modules/@langchain/langgraph-checkpoint-sqlite/package.json", import.meta.url)));
process.stdout.write(JSON.stringify({ version, synchronous, saves, newest, any, processor: processor / step, bytes }) + "\n");
