import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { readConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import { migrated } from "@tapedeck/query/testing/migrated";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { expect, it } from "vitest";
import { gatewayEnv, startStack } from "../stack/stack.ts";

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
);

it("another services' key takes effect with a restart, and the old one gets nowhere", async () => {
  await using nats = await startTestNats();
  await using database = await freshDatabase(migrated);
  await using fake = await startFakeSkaffold({ recording });
  const withKey = (TAPEDECK_SERVICES_KEY: string) =>
    startStack({
      skaffold: [{ address: fake.address }],
      servers: { nats, database: database.url },
      env: { TAPEDECK_SERVICES_KEY },
    });
  {
    await using before = await withKey("the old key");
    await fake.playUntil({ v1: 10 });
    await before.recorded({ v1: 10 });
  }
  await using stack = await withKey("the new key");
  const statusOf = async (http: string) => (await fetch(`http://${http}/api/v1/sources`)).status;
  expect(await statusOf(stack.http)).toBe(200);
  const left = { ...gatewayEnv(stack.parts), TAPEDECK_SERVICES_KEY: "the old key" };
  await using gateway = await startGateway(readConfig({ env: left }), silentLogger);
  const http = gateway.addresses.http ?? "";
  expect(await statusOf(http)).toBe(500);
  const metrics = await (await fetch(`http://${http}/metrics`)).text();
  expect(metrics).toMatch(/^tapedeck_gateway_errors_total\{api="api",code="internal".*\} 1$/m);
  const { ready, checks } = (await (await fetch(`http://${http}/readyz`)).json()) as {
    ready: boolean;
    checks: Record<string, string>;
  };
  expect([ready, checks.query]).toEqual([false, expect.stringContaining("key")]);
});
