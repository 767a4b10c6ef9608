import { appendFileSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests start many of our processes (services to be killed, the CLI, stand-ins), which inherit this: compiled once, a
// service starts with half the work.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/tapedeck", import.meta.url));

/** Seconds that each file took when `node .ci/durations.mjs` last wrote them. A file that is not there begins first. */
const durations: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL(".ci/durations.json", import.meta.url), "utf8"),
);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = fileURLToPath(new URL(".", import.meta.url));
    const duration = ({ moduleId }: TestSpecification) =>
      durations[relative(root, moduleId)] ?? Number.MAX_SAFE_INTEGER;
    return files.toSorted((one, other) => duration(other) - duration(one));
  }
}

/** The whole system (of which `test/smoke` is a little), and what takes minutes. */
const long = ["**/*.long.test.ts", "test/!(docs|bench|smoke)/**/*.test.ts"];
/** What takes many minutes, or measures. */
const nightly = ["**/*.nightly.test.ts"];
const cluster = ["test/cluster/cluster.test.ts", "test/cluster/workspaces.test.ts"];
const never = ["**/node_modules/**", "**/.tapedeck/**", "**/gen/**"];
/** What `.ci/run` leaves out because nothing that it tests has changed. */
const unchanged = (process.env.TAPEDECK_TEST_UNCHANGED ?? "").split(",").filter((glob) => glob !== "");

const isCi = process.env.CI !== undefined;

/** A file that collects errors that no test caught: vitest's reports have none of them. */
const uncaught = process.env.TAPEDECK_TEST_UNCAUGHT;

/**
 * `npm test` runs the project "short": each part by itself. `npm run test:long` runs "long": the whole system, its kills and outages, and
 * what takes minutes. `.ci/run` runs both. `npm run test:cluster` runs a cluster of all parts
 * (docs/cluster.md), and nothing beside it: it takes times. `npm run test:nightly` runs the first two with searches at
 * length (see searches.ts), and `*.nightly.test.ts`.
 */
export default defineConfig(({ mode }) => {
  const isNightly = mode === "nightly";
  const shared = {
    setupFiles: ["packages/shared/src/testing/property-tests.ts", "packages/shared/src/testing/left-behind.ts"],
    // A worker runs many files one after the other, and loads the modules that they share once.
    isolate: false,
    // The login of the user who runs the tests must not affect them.
    env: { XDG_CONFIG_HOME: "/nonexistent", TAPEDECK_TEST_SEARCH: isNightly ? "long" : "short" },
    hookTimeout: 600_000,
    expect: { poll: { timeout: isCi ? 300_000 : 60_000 } },
  };
  // Tests wait for conditions and never for a time, so these only bound how long a broken one hangs. In CI nobody waits for that, and other
  // programs may have the cores.
  const timeouts = { short: isNightly || isCi ? 600_000 : 120_000, long: 600_000 };
  // Tests mostly wait, for other processes and for real times: with three more files than cores a fifth of the cores stood idle.
  const maxWorkers = availableParallelism() + 5;
  return {
    test: {
      globalSetup: ["packages/shared/src/testing/servers.ts"],
      sequence: { sequencer: LongestFirst },
      // The NATS client may write to a socket that it has discarded (see service/process/discarded-sockets.ts): no other
      // uncaught error is ignored.
      onUnhandledError({ message, stack = "" }) {
        if (message === "write after end" && stack.includes("node_transport")) return false;
        if (uncaught !== undefined) appendFileSync(uncaught, `${stack || message}\n`);
      },
      projects: [
        {
          test: {
            ...shared,
            name: "short",
            include: ["**/*.test.ts"],
            exclude: [...never, ...long, ...nightly, ...cluster],
            maxWorkers,
            testTimeout: timeouts.short,
            sequence: { groupOrder: 0 },
          },
        },
        {
          test: {
            ...shared,
            name: "long",
            include: [...long, ...(isNightly ? nightly : [])],
            exclude: [...never, ...cluster, ...unchanged, ...(isNightly ? [] : nightly)],
            maxWorkers,
            testTimeout: timeouts.long,
            sequence: { groupOrder: 1 },
          },
        },
        {
          test: {
            ...shared,
            name: "cluster",
            include: cluster,
            exclude: never,
            maxWorkers: 1,
            testTimeout: timeouts.long,
            sequence: { groupOrder: 2 },
          },
        },
      ],
    },
  };
});
