import { startHealthServer } from "@tapedeck/shared/service/health";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { expect, it } from "vitest";
import { readProblems } from "./metrics.ts";

it("problems are what /readyz says beside ok, and nothing where nobody answers", async () => {
  const checks = { log: () => "the log was deleted", database: () => undefined };
  const server = await startHealthServer({ host: "127.0.0.1", port: 0, checks, metrics: createMetrics("sample") });
  expect(await readProblems(server.address)).toEqual(["the log was deleted"]);
  await server[Symbol.asyncDispose]();
  expect(await readProblems(server.address)).toEqual([]);
});
