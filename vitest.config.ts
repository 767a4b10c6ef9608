import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig(({ mode }) => {
  // `*.long.test.ts` (random kills, minutes away, many interleavings) run with `npm run test:long` only.
  const long = mode === "long";
  return {
    test: {
      include: ["**/*.test.ts"],
      exclude: ["**/node_modules/**", "**/.tapedeck/**", "**/gen/**", ...(long ? [] : ["**/*.long.test.ts"])],
      setupFiles: ["packages/shared/src/testing/property-tests.ts"],
      globalSetup: ["packages/shared/src/testing/servers.ts"],
      // Tests wait for other processes most of the time: on two cores two files at once take little more than half as long.
      maxWorkers: Math.max(2, availableParallelism() - 1),
      // Tests wait for conditions and never for a time, so these only bound how long a broken one hangs.
      // What whoever runs the tests has logged in to is no matter of theirs.
      env: { XDG_CONFIG_HOME: "/nonexistent" },
      testTimeout: long ? 600_000 : 60_000,
      hookTimeout: 60_000,
      // The NATS client may write to a socket that it has discarded (see service/discarded-sockets.ts): nothing else
      // that nobody caught is let through.
      onUnhandledError: ({ message, stack = "" }) =>
        !(message === "write after end" && stack.includes("node_transport")),
    },
  };
});
