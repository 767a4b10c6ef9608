import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, inject, it } from "vitest";
import { NatsCluster } from "../cluster/nats-cluster.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { socketSubscriber } from "../faults/subscribers.ts";
import { startRunningServices } from "./running-services.ts";

it("a second gateway serves what the first does, and goes on without it", async () => {
  await using nats = await startTestNats();
  await using database = await freshDatabase(migrated);
  await using running = await startRunningServices(nats.url, database.url);
  await using second = await startServiceProcess("gateway", running.gatewayEnv);
  const http = second.addresses.http ?? "";
  await using subscriber = socketSubscriber(http, {});
  await running.goesOn();
  await running.services.gateway.kill();
  await running.goesOn();
  const answer = await fetch(`http://${http}/api/v1/sources`);
  expect((await answer.json()) as { items: object[] }).toMatchObject({
    items: [{ source: "default/alice/shop/skaffold" }],
  });
  await running.services.gateway.start();
  await running.nothingIsLost(subscriber);
});

it("a log of one replica gets three while it is written, and then bears the loss of a server", async () => {
  await using nats = await NatsCluster.start(await mkdtemp(join(inject("serversFolder"), "cluster-")));
  await using database = await freshDatabase(migrated);
  await using running = await startRunningServices(nats.url, database.url);
  const replicas = async () => [...new Set(Object.values(await nats.replicas()))];
  expect(await replicas()).toEqual([1]);
  for (const name of ["query", "gateway", "ingest"] as const) {
    await running.restart(name, { TAPEDECK_NATS_REPLICAS: "3" });
    await running.goesOn();
  }
  await until(async () => (await replicas()).join() === "3", { message: "three replicas of everything" });
  await nats.whole();
  await nats.kill(await nats.leader());
  await running.goesOn();
  await running.nothingIsLost();
});
