import { startHealthServer } from "@tapedeck/shared/service/health";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { expect, it } from "vitest";
import { readHealthReport } from "./metrics.ts";

it("problems are what /readyz says beside ok, and nothing where nobody answers", async () => {
  const checks = { log: () => "the log was deleted", database: () => undefined };
  const details = () => ({ warnings: ["something is lost"] });
  const metrics = createMetrics("sample");
  const server = await startHealthServer({ host: "127.0.0.1", port: 0, checks, metrics, details });
  const base = `http://${server.address}`;
  expect(await readHealthReport(base)).toEqual({ problems: ["the log was deleted"], warnings: ["something is lost"] });
  await server[Symbol.asyncDispose]();
  expect(await readHealthReport(base)).toEqual({ problems: [], warnings: [] });
});
