// Writes into durations.json, from which vitest.config.ts knows what to begin with, how long each file of a run took:
// node .ci/durations.mjs <a report of vitest's JSON reporter>.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";

const path = new URL("durations.json", import.meta.url);
const read = (file) => JSON.parse(readFileSync(file, "utf8"));
const seconds = read(process.argv[2]).testResults.map(({ name, startTime, endTime }) => [
  relative(process.cwd(), name),
  Math.round((endTime - startTime) / 1_000),
]);
const all = Object.entries({ ...read(path), ...Object.fromEntries(seconds) }).filter(([file]) => existsSync(file));
all.sort(([one], [other]) => (one < other ? -1 : 1));
writeFileSync(path, `${JSON.stringify(Object.fromEntries(all), undefined, 2)}\n`);
