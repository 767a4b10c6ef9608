import { startTestLog } from "@tapedeck/shared/testing/test-log";
import { expect, it } from "vitest";
import { UnrecordedEndpoints } from "./unrecorded-endpoints.ts";

it("many probes of /readyz read the log once", async () => {
  await using log = await startTestLog();
  let lookUps = 0;
  const { reader } = log;
  const counted = {
    lastMatch: (subjects: readonly string[]) => {
      lookUps++;
      return reader.lastMatch(subjects);
    },
  };
  const config = {
    endpoints: [{ source: "erin/shop/skaffold", grpc: "127.0.0.1:0" }],
    workspace: "default",
    auth: "none" as const,
  };
  const endpoints = new UnrecordedEndpoints({ config, log: () => counted });
  const all = await Promise.all(Array.from({ length: 50 }, () => endpoints.warnings()));
  expect(all.flat()).toHaveLength(50);
  await endpoints.warnings();
  expect(lookUps).toBe(1);
});
