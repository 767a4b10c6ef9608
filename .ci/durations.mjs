// Writes durations.json, from which vitest.config.ts knows what to begin with: node .ci/durations.mjs <a report of vitest's
// JSON reporter>.
import { readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";

const { testResults } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const seconds = testResults
  .map(({ name, startTime, endTime }) => [relative(process.cwd(), name), Math.round((endTime - startTime) / 1_000)])
  .filter(([, duration]) => duration > 0)
  .sort(([one], [other]) => (one < other ? -1 : 1));
writeFileSync(
  new URL("durations.json", import.meta.url),
  `${JSON.stringify(Object.fromEntries(seconds), undefined, 2)}\n`,
);
