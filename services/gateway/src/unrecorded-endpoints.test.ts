import { openLog } from "@tapedeck/shared/log/jetstream";
import { WorkspaceLogs } from "@tapedeck/shared/log/workspace-logs";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestLog } from "@tapedeck/shared/testing/test-log";
import { expect, it } from "vitest";
import { UnrecordedEndpoints } from "./unrecorded-endpoints.ts";

it("many probes of /readyz ask for the logs once", async () => {
  await using log = await startTestLog();
  await using logs = new WorkspaceLogs({ nats: log.nc, open: async () => log });
  let lookUps = 0;
  const counted = {
    of: (workspace: string) => logs.of(workspace),
    forget: async () => {},
    names: () => {
      lookUps++;
      return logs.names();
    },
  };
  const config = {
    endpoints: [{ source: "erin/shop/skaffold", grpc: "127.0.0.1:0" }],
    workspace: "default",
    auth: "none" as const,
  };
  const endpoints = new UnrecordedEndpoints({ config, logs: () => counted });
  const all = await Promise.all(Array.from({ length: 50 }, () => endpoints.warnings()));
  expect(all.flat()).toHaveLength(50);
  await endpoints.warnings();
  expect(lookUps).toBe(1);
});

it("an endpoint is recorded once a log has something of its source, in its own workspace or where any may be meant", async () => {
  await using log = await startTestLog();
  const open = (workspace: string) => openLog(log.nc, { workspace, syncKnown: true });
  await using logs = new WorkspaceLogs({ nats: log.nc, open });
  const erin = { source: "erin/shop", grpc: "127.0.0.1:0" };
  const unrecorded = async (auth: "none" | "tokens", source = erin.source) => {
    const config = { endpoints: [{ ...erin, source }], workspace: "default", auth };
    return (await new UnrecordedEndpoints({ config, logs: () => logs }).warnings()).length > 0;
  };
  const record = async (workspace: string) => {
    const source = sourceName({ workspace, developer: "erin", project: "shop", upstream: "skaffold" });
    await using own = await openLog(log.nc, { workspace, syncKnown: true });
    await testWriter(own.writer, source).append(1, { session: "A", channel: "tapedeck", kind: "session.started" });
  };
  await record("other");
  expect(await unrecorded("none")).toBe(true);
  expect(await unrecorded("tokens")).toBe(false);
  expect(await unrecorded("tokens", "default/erin/shop/skaffold")).toBe(true);
  expect(await unrecorded("tokens", "other/erin/shop/skaffold")).toBe(false);
  await record("default");
  expect(await unrecorded("none")).toBe(false);
});
