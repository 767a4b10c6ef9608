import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { type IngestBench, ingestBench, metric, saidBy } from "../bench/ingest-bench.ts";
import { framesOf, holes, kindsOf } from "./recorded-events.ts";
import type { ServiceProcess } from "./service-process.ts";

/** 577 frames, which take four times as much in memory as this. */
const folder = "05-control-api-auto-off";
const spillMemoryBytes = 64 * 1024;

/** Skaffold is dialled though there is no log, and listened to all the way; then the log comes. */
export async function awayAtTheStart(whileAway: () => Promise<void> = async () => {}): Promise<void> {
  await using bench = await ingestBench(folder);
  const { fake, nats } = bench;
  await nats.kill();
  const ingest = await bench.ingest({ spillMemoryBytes });
  await until(() => fake.peers.size === 1, { message: "Skaffold to be dialled without a log" });
  await fake.play();
  await isSpilled(ingest);
  expect(fake.health.v1.stalled || fake.health.v2.stalled).toBe(false);
  await whileAway();
  await nats.restart();
  await isComplete(bench, ingest, 1);
}

export async function awayInTheMiddle(whileAway: () => Promise<void> = async () => {}): Promise<void> {
  await using bench = await ingestBench(folder);
  const { fake, nats } = bench;
  const ingest = await bench.ingest({ spillMemoryBytes });
  await bench.playTo(0.2);
  await bench.recorded();
  await nats.kill();
  await bench.playTo(0.8);
  await isSpilled(ingest);
  expect(fake.health.v1.stalled || fake.health.v2.stalled).toBe(false);
  await whileAway();
  await nats.restart();
  await fake.play();
  await isComplete(bench, ingest, 1);
}

/** What it had on disk it brings; what it had in memory Skaffold says again. */
export async function killedWhileSpilled(): Promise<void> {
  await using bench = await ingestBench(folder);
  const { fake, nats } = bench;
  const ingest = await bench.ingest({ spillMemoryBytes });
  await bench.playTo(0.2);
  await bench.recorded();
  await nats.kill();
  await bench.playTo(0.8);
  await isSpilled(ingest);
  await ingest.kill();
  await nats.restart();
  await ingest.start();
  await until(() => fake.peers.size === 2, { message: "the tap to dial again" });
  await fake.play();
  await isComplete(bench, ingest, 2);
}

async function isSpilled(ingest: ServiceProcess): Promise<void> {
  const onDisk = async () => ((await metric(ingest, "tapedeck_ingest_spill_bytes", 'where="disk"')) ?? 0) > 0;
  await until(onDisk, { message: "the spill to be on disk" });
}

async function isComplete(bench: IngestBench, ingest: ServiceProcess, connections: number): Promise<void> {
  const { fake, recording } = bench;
  await bench.recorded();
  const events = await bench.events();
  expect(framesOf(events, "v1")).toEqual(saidBy(recording, "v1"));
  expect(framesOf(events, "v2")).toEqual(saidBy(recording, "v2"));
  expect(holes(events)).toEqual([]);
  expect(kindsOf(events).filter((kind) => /^session\.(started|ended|gap)$/.test(kind))).toEqual(["session.started"]);
  expect(fake.peers.size).toBe(connections);
  expect(fake.hung).toEqual([]);
  const isEmpty = async () => (await metric(ingest, "tapedeck_ingest_spill_items")) === 0;
  await until(isEmpty, { message: "the spill to be empty" });
  expect(await metric(ingest, "tapedeck_ingest_spill_dropped")).toBe(0);
}
