import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Tests start many of our processes (services to be killed, the CLI, stand-ins), which inherit this: compiled once, a
// service starts with half the work.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/tapedeck", import.meta.url));

/** While the files' durations are unknown, the largest run first. These are small and take long. */
const begin = ["test/bench/", "/recordings."];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isFirst = ({ moduleId }: TestSpecification) => begin.some((part) => moduleId.includes(part));
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))];
  }
}

export default defineConfig(({ mode }) => {
  // `npm run test:long` runs what takes long: `*.long.test.ts` and `test/faults` (kills, outages and networks that break),
  // and the random searches (`*.random.test.ts`), which go further there than in `npm test`, from another seed each time.
  // `npm run test:cluster` runs a cluster of all parts (docs/cluster.md), and nothing beside it: it takes times.
  const long = mode === "long" || mode === "cluster";
  const suites: Readonly<Record<string, readonly string[]>> = {
    long: ["**/*.{long,random}.test.ts", "test/faults/**/*.test.ts"],
    cluster: ["test/cluster/cluster.test.ts"],
  };
  return {
    test: {
      include: [...(suites[mode] ?? ["**/*.test.ts"])],
      exclude: [
        ...["**/node_modules/**", "**/.tapedeck/**", "**/gen/**"],
        ...(mode === "cluster" ? [] : ["test/cluster/cluster.test.ts"]),
        ...(long ? [] : ["**/*.long.test.ts", "test/faults/**"]),
      ],
      setupFiles: ["packages/shared/src/testing/property-tests.ts", "packages/shared/src/testing/left-behind.ts"],
      globalSetup: ["packages/shared/src/testing/servers.ts"],
      // Tests mostly wait, for other processes and for real times: three more files than cores keep the cores busy. The
      // long ones start many processes themselves.
      maxWorkers: long ? Math.max(2, availableParallelism()) : availableParallelism() + 3,
      sequence: { sequencer: LongestFirst },
      // A worker runs many files one after the other, and loads the modules that they share once.
      isolate: false,
      // The login of the user who runs the tests must not affect them.
      env: { XDG_CONFIG_HOME: "/nonexistent", TAPEDECK_TEST_SEARCH: long ? "long" : "short" },
      // Tests wait for conditions and never for a time, so these only bound how long a broken one hangs.
      testTimeout: long ? 600_000 : 120_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 60_000 } },
      // The NATS client may write to a socket that it has discarded (see service/discarded-sockets.ts): no other
      // uncaught error is ignored.
      onUnhandledError: ({ message, stack = "" }) =>
        !(message === "write after end" && stack.includes("node_transport")),
    },
  };
});
