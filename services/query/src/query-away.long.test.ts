import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startQuery } from "./query.ts";
import { queryClient, readiness } from "./testing/client.ts";
import { scenario } from "./testing/scenario.ts";
import { reaches, stage } from "./testing/stage.ts";

it("waits for a database that is away, and continues where it stopped", async () => {
  await using on = await stage();
  const folder = await mkdtemp(join(tmpdir(), "tapedeck-query-"));
  await chmod(folder, 0o711);
  const start = (port: number) => startPostgres({ dataDir: join(folder, "postgres"), port, fsync: false });
  let postgres = await start(0);
  try {
    await postgres.ensureDatabase("tapedeck");
    const config = { ...on.config, databaseUrl: postgres.url("tapedeck") };
    await using query = await startQuery(config, silentLogger);
    using ask = queryClient(query.address);
    const script = scenario();
    const [first = 0] = await on.write([script.add({ kind: "source.added" })]);
    await reaches(query, first);

    await postgres.kill("SIGKILL");
    const later = script.session("S");
    later.started();
    const [second = 0] = await on.write(script.events.slice(1));
    await expect(ask.listSources()).rejects.toMatchObject({ code: "not_ready" });
    await until(async () => (await readiness(query.addresses.health)).status === 503, { message: "not to be ready" });

    postgres = await start(postgres.port);
    await reaches(query, second);
    expect((await ask.listSources()).items).toMatchObject([{ current_session: "S", last_position: on.at(second) }]);
    await until(async () => (await readiness(query.addresses.health)).status === 200, { message: "to be ready" });
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

it("waits for a log that is away", async () => {
  await using on = await stage();
  const script = scenario();
  const [first = 0] = await on.write([script.add({ kind: "source.added" })]);
  await on.nats.kill();
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  await expect(ask.position()).rejects.toMatchObject({ code: "not_ready" });
  expect(await readiness(query.addresses.health)).toMatchObject({ status: 503 });
  await on.nats.restart();
  await reaches(query, first);

  await on.nats.kill();
  // What the tables have is answered all the same.
  expect((await ask.listSources()).items).toHaveLength(1);
  await on.nats.restart();
  const second = await until(async () => (await on.write([script.add({ kind: "source.checkpoint" })]))[0], {
    message: "the log to be back",
  });
  await reaches(query, second);
});
