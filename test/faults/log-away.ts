import { until } from "@tapedeck/shared/testing/until";
import { expect } from "vitest";
import { type IngestHarness, ingestHarness, metric, sentFrames } from "../harness/ingest-harness.ts";
import { startOtherWorkspace } from "./other-workspace.ts";
import { framesOf, holes, kindsOf } from "./recorded-events.ts";
import type { ServiceProcess } from "./service-process.ts";

/** A recording with 577 frames, which need four times `spillMemoryBytes`. */
const folder = "05-control-api-auto-off";
const spillMemoryBytes = 64 * 1024;

/** Skaffold is dialled while the log is unavailable and read to the end; then the log comes back. */
export async function awayAtTheStart(whileAway: () => Promise<void> = async () => {}): Promise<void> {
  await using harness = await ingestHarness(folder);
  const { fake, nats } = harness;
  await nats.kill();
  const ingest = await harness.ingest({ spillMemoryBytes });
  await until(() => fake.peers.size === 1, { message: "Skaffold to be dialled without a log" });
  await fake.play();
  await isSpilled(ingest);
  expect(fake.health.v1.stalled || fake.health.v2.stalled).toBe(false);
  await whileAway();
  await nats.restart();
  await isComplete(harness, ingest, 1);
}

export async function awayInTheMiddle(whileAway: () => Promise<void> = async () => {}): Promise<void> {
  await using harness = await ingestHarness(folder);
  const { fake, nats } = harness;
  await using spilled = await spillInTheMiddle(harness);
  expect(fake.health.v1.stalled || fake.health.v2.stalled).toBe(false);
  await whileAway();
  await nats.restart();
  await fake.play();
  await isComplete(harness, spilled.ingest, 1);
  await spilled.other.finish();
}

/** The frames on disk are recorded from there; Skaffold repeats those that were in memory. */
export async function killedWhileSpilled(): Promise<void> {
  await using harness = await ingestHarness(folder);
  const { fake, nats } = harness;
  await using spilled = await spillInTheMiddle(harness);
  const { ingest, other } = spilled;
  await ingest.kill();
  await nats.restart();
  await ingest.start();
  await until(() => fake.peers.size === 2, { message: "the tap to dial again" });
  await fake.play();
  await isComplete(harness, ingest, 2);
  await other.finish();
}

/** Records a fifth of the recording, and another workspace beside it, kills the log, and plays until the spill is on disk. */
async function spillInTheMiddle(harness: IngestHarness) {
  await using cleanup = new AsyncDisposableStack();
  const ingest = await harness.ingest({ spillMemoryBytes });
  const other = cleanup.use(await startOtherWorkspace({ nats: harness.nats.url, services: { ingest } }));
  await harness.playTo(0.2);
  await harness.recorded();
  await harness.nats.kill();
  await harness.playTo(0.8);
  await isSpilled(ingest);
  const owned = cleanup.move();
  return { ingest, other, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function isSpilled(ingest: ServiceProcess): Promise<void> {
  const onDisk = async () => ((await metric(ingest, "tapedeck_ingest_spill_bytes", 'where="disk"')) ?? 0) > 0;
  await until(onDisk, { message: "the spill to be on disk" });
}

async function isComplete(harness: IngestHarness, ingest: ServiceProcess, connections: number): Promise<void> {
  const { fake, recording } = harness;
  await harness.recorded();
  const events = await harness.events();
  expect(framesOf(events, "v1")).toEqual(sentFrames(recording, "v1"));
  expect(framesOf(events, "v2")).toEqual(sentFrames(recording, "v2"));
  expect(holes(events)).toEqual([]);
  expect(kindsOf(events).filter((kind) => /^session\.(started|ended|gap)$/.test(kind))).toEqual(["session.started"]);
  expect(fake.peers.size).toBe(connections);
  expect(fake.hung).toEqual([]);
  const isEmpty = async () => (await metric(ingest, "tapedeck_ingest_spill_items")) === 0;
  await until(isEmpty, { message: "the spill to be empty" });
  expect(await metric(ingest, "tapedeck_ingest_spill_dropped")).toBe(0);
}
