import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { it } from "vitest";
import { startStack } from "../stack/stack.ts";
import { startConfiguredNats } from "./configured-nats.ts";

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/04-deploy-failure-then-recovery"),
);

it("another password of NATS takes effect with a restart of the server and of its service, and nothing is lost", async () => {
  const env = { PASSWORD: "old-password" };
  await using nats = await startConfiguredNats({
    configuration: "authorization { user: u, password: $PASSWORD }",
    env,
  });
  await using database = await freshDatabase(migrated);
  await using fake = await startFakeSkaffold({ recording });
  const withPassword = (password: string) =>
    startStack({
      skaffold: [{ address: fake.address }],
      servers: { nats, database: database.url },
      env: { TAPEDECK_NATS_USER: "u", TAPEDECK_NATS_PASSWORD: password },
      connect: () => connect({ servers: nats.url, user: "u", pass: password, ignoreAuthErrorAbort: true }),
    });
  {
    await using before = await withPassword("old-password");
    await fake.playUntil({ v1: 10 });
    await before.recorded({ v1: 10 });
    env.PASSWORD = "new-password";
    await nats.restart();
    // It was connected, and is refused now.
    const isReady = async () => JSON.parse((await before.httpCall("GET", "/readyz")).body).ready;
    await until(async () => !(await isReady()), { message: "the gateway to notice" });
    await fake.playUntil({ v1: 20 });
  }
  await using stack = await withPassword("new-password");
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
});
