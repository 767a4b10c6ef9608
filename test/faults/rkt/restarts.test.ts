import { jetstreamManager } from "@nats-io/jetstream";
import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import type { InventoryKind } from "@tapedeck/fakes/rkt/recording";
import { eventsIn, labelsOf } from "@tapedeck/shared/log/batch/batch";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { channelFilter, messageFilters, messageSubject, streamOf } from "@tapedeck/shared/log/subjects";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { expect, it } from "vitest";
import { logs } from "../../harness/ingest-harness.ts";
import {
  failed,
  type Host,
  pollsLater,
  type RktHarness,
  recorded,
  rktHarness,
  startHost,
} from "../../harness/rkt-harness.ts";
import { holes, sessionsOf } from "../recorded-events.ts";

const all = Array.from({ length: 3_000 }, (_, index) => runningPod(index));
/** How many pods end from each row to the next; each records its app's end and its own. */
const ending = 400;
const rows = [0, 1, 2, 3, 4].map((row) => all.map((pod, index) => (index < row * ending ? failed(pod) : pod)));

it("a large host is described in parts and again after a thousand events, so a restart needs nothing older", async () => {
  await using harness = await rktHarness();
  await using host = await startHost("large", madeUpRecording({ pods: rows }));
  host.playTo("pods", 1);
  const goOnWithImages = host.fake.hold("images");
  const ingest = await harness.ingest([host]);
  host.playTo("pods", 2);
  await until(async () => (await described(harness, host)).length === 1, { message: "the pods to be described" });

  // Killed when pods are described and images are not.
  await recorded(ingest);
  await ingest.kill();
  await ingest.start();
  goOnWithImages();
  await until(async () => (await eventsOf(harness, host, "images")).length === 1, {
    message: "the images to be described",
  });
  expect(await described(harness, host)).toHaveLength(1);

  // Eight hundred events are not enough, twice as many are.
  await exits(2);
  await exits(3);
  await until(async () => (await described(harness, host)).length === 2, { message: "a second description" });
  await recorded(ingest);
  await ingest.kill();
  const seq = sequenceOf((await described(harness, host)).at(-1)?.[0]?.offset ?? logStart);
  await using nats = await connect({ servers: harness.nats.url });
  const manager = await jetstreamManager(nats);
  const before = (await eventsOf(harness, host, "pods")).filter(({ offset }) => sequenceOf(offset) < seq);
  expect(before.length).toBeGreaterThan(4 * ending);
  for (const filter of messageFilters([channelFilter(host.source, "pods")])) {
    expect((await manager.streams.purge(streamOf("default"), { filter, seq })).purged).toBeGreaterThan(0);
  }

  await ingest.start();
  await exits(4);
  await exits(5);
  await pollsLater(host);
  await recorded(ingest);
  const events = await harness.events(host);
  expect(holes(events)).toEqual([]);
  expect(sessionsOf(events)).toHaveLength(1);
  const subjects = (kind: string) =>
    events.flatMap(({ event }) => (event.kind === kind ? [event.subject] : [])).toSorted();
  const ended = all.slice(0, 4 * ending).map(({ id }) => id);
  expect(subjects("pod.exited")).toEqual(ended);
  expect(subjects("app.exited")).toEqual(ended.map((id) => `${id}/worker`));
  const parts = (await described(harness, host)).map((one) => one.length);
  expect(parts.every((count) => count > 2)).toBe(true);
  expect(await eventsOf(harness, host, "pods")).toHaveLength(parts.reduce((sum, count) => sum + count) + 8 * ending);

  /** Answers so many rows, and waits for the ends in them. */
  async function exits(count: number): Promise<void> {
    host.playTo("pods", count + 1);
    const isThere = async () => {
      const found = (await eventsOf(harness, host, "pods")).filter(({ event }) => event.kind === "pod.exited").length;
      return found === (count - 1) * ending;
    };
    await until(isThere, { message: `the ends of row ${count}` });
  }
});

it("a first description that a kill cut off is ignored and written again in full", async () => {
  await using harness = await rktHarness();
  // More than one message holds.
  const pods = all.slice(0, 50).map((pod) => ({ ...pod, manifest: Buffer.alloc(250_000, pod.id) }));
  await using host = await startHost("heavy", madeUpRecording({ pods: [pods, pods.map(failed)] }));
  host.playTo("pods", 1);
  const ingest = await harness.ingest([host]);
  await using nats = await connect({ servers: harness.nats.url });
  const killed = Promise.withResolvers<void>();
  const descriptions = nats.subscribe(messageSubject(host.source, "pods", "inventory.described", "facts"), {
    callback(_, { data }) {
      const labels = eventsIn(data).map(labelsOf);
      if (!labels.some(({ channel, kind }) => channel === "pods" && kind === "inventory.described")) return;
      descriptions.unsubscribe();
      killed.resolve(ingest.kill());
    },
  });
  await nats.flush();
  host.playTo("pods", 2);
  await killed.promise;
  const cut = (await eventsOf(harness, host, "pods")).length;
  await ingest.start();
  await until(async () => (await described(harness, host)).length === 1, { message: "the pods to be described" });
  await recorded(ingest);
  const parts = (await described(harness, host))[0]?.length ?? 0;
  expect(parts).toBeGreaterThan(20);
  // The test can't determine how far it came.
  expect(await eventsOf(harness, host, "pods")).toHaveLength(cut === parts ? parts : cut + parts);

  host.playTo("pods", 3);
  const ends = async () => (await kinds(harness, host)).filter((kind) => kind === "pod.exited").length;
  await until(async () => (await ends()) === pods.length, { message: "all pods to have ended" });
  expect(holes(await harness.events(host))).toEqual([]);
  expect(sessionsOf(await harness.events(host))).toHaveLength(1);
  console.log(`first description cut off after ${cut} of ${parts} parts`);
});

it("a second ingest never polls a host while the first lives, and continues where the killed one stopped", async () => {
  await using harness = await rktHarness();
  const [one, other] = [runningPod(0), runningPod(1)];
  const pods = [
    [one, other],
    [failed(one), other],
    [failed(one), failed(other)],
  ];
  await using host = await startHost("shared", madeUpRecording({ pods }));
  host.playTo("pods", 2);
  const first = await harness.ingest([host]);
  await until(() => host.stands(), { message: "the first to look" });
  const second = await harness.ingest([host]);
  await logs(second, "standing by");
  host.playTo("pods", 3);
  await until(async () => (await kinds(harness, host)).includes("pod.exited"), { message: "the first pod's end" });
  expect(host.fake.peers.size).toBe(1);

  await first.kill();
  await until(() => host.fake.peers.size === 2, { message: "the second to look" });
  await first.start();
  await logs(first, "standing by");
  host.playTo("pods", 4);
  const ends = async () => (await kinds(harness, host)).filter((kind) => kind === "pod.exited").length;
  await until(async () => (await ends()) === 2, { message: "the second pod's end" });
  await pollsLater(host);
  expect(host.fake.peers.size).toBe(2);
  expect(await kinds(harness, host)).toEqual([
    "inventory.described",
    ...["app.exited", "pod.exited"],
    "app.exited",
    "pod.exited",
  ]);
  const events = await harness.events(host);
  expect(holes(events)).toEqual([]);
  expect(sessionsOf(events)).toHaveLength(1);
});

async function eventsOf(harness: RktHarness, host: Host, kind: InventoryKind): Promise<readonly RecordedEvent[]> {
  return (await harness.events(host)).filter(({ event }) => event.channel === kind);
}

async function kinds(harness: RktHarness, host: Host): Promise<readonly string[]> {
  return (await eventsOf(harness, host, "pods")).map(({ event }) => event.kind);
}

/** Returns the complete descriptions of the pods, by their parts. */
async function described(harness: RktHarness, host: Host): Promise<readonly (readonly RecordedEvent[])[]> {
  const whole: (readonly RecordedEvent[])[] = [];
  let parts: RecordedEvent[] = [];
  for (const one of await eventsOf(harness, host, "pods")) {
    const { detail } = one.event;
    if (detail?.$case !== "host") continue;
    if (detail.value.part === 0) parts = [];
    parts.push(one);
    if (parts.length === detail.value.parts) whole.push(parts);
  }
  return whole;
}
