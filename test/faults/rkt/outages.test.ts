import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { type FakeRkt, startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { Image, ListImagesRequest, ListPodsRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { failed } from "../../harness/rkt-harness.ts";
import { rktClient } from "../../rkt/client.ts";
import { type Stack, startStack } from "../../stack/stack.ts";
import { holes, kindsOf, sessionsOf } from "../recorded-events.ts";

const [first, second] = [runningPod(0), runningPod(1)];
const images = ["sha512-1", "sha512-2"].map((id) => Image.fromPartial({ id, name: "sim.example/worker" }));
const dir = "/var/lib/rkt";

/** Starts a polled host; its first pod has failed in the second row, which is held until `goOn`. */
async function lookedAt(settings: Readonly<Record<string, string>> = {}) {
  await using cleanup = new AsyncDisposableStack();
  const recording = madeUpRecording({
    pods: [
      [first, second],
      [failed(first), second],
    ],
    images: [images],
  });
  const fake = cleanup.use(await startFakeRkt({ recording, repeatOnReconnect: true }));
  fake.setDir(dir);
  const goOn = fake.hold("pods", 2);
  const stack = cleanup.use(await startStack({ rkt: [{ address: fake.address, interval: "20ms", ...settings }] }));
  await stack.described();
  const owned = cleanup.move();
  return { fake, goOn, stack, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Stops the service and starts it with another recording; resolves when it was polled again. */
async function restarted(fake: FakeRkt, change: () => void = () => {}): Promise<void> {
  const before = fake.peers.size;
  await fake.goAway();
  change();
  await fake.comeBack();
  await until(() => fake.peers.size > before, { message: "the service to be dialled again" });
  await pollsLater(fake);
}

/** Waits for polls of images, because a poll of pods may hang. */
async function pollsLater(fake: FakeRkt, polls = 4): Promise<void> {
  const goal = fake.polls.images + polls;
  await until(() => fake.polls.images >= goal, { message: `${polls} more polls` });
}

/** Returns the events of pods and images. */
async function inventoryEvents(stack: Stack): Promise<readonly Event[]> {
  return (await stack.events()).flatMap(({ event }) => (event.channel === "tapedeck" ? [] : [event]));
}

async function inventoryKinds(stack: Stack): Promise<readonly string[]> {
  return (await inventoryEvents(stack)).map(({ channel, kind }) => `${channel} ${kind}`);
}

async function gaps(stack: Stack): Promise<readonly string[]> {
  return (await stack.events()).flatMap(({ event }) =>
    event.kind === "session.gap" ? [`${event.channel}: ${event.subject}`] : [],
  );
}

async function lists(stack: Stack) {
  using client = rktClient(stack.grpc);
  await stack.caughtUp();
  return {
    pods: await client.ask("ListPods", ListPodsRequest.encode({ filters: [], detail: true }).finish()),
    images: await client.ask("ListImages", ListImagesRequest.encode({ filters: [], detail: true }).finish()),
  };
}

const described = ["images inventory.described", "pods inventory.described"];
const oneGapEach = ["tapedeck: images", "tapedeck: pods"];

it("a restart of the api-service records nothing but a gap", async () => {
  await using host = await lookedAt();
  const before = await lists(host.stack);
  await restarted(host.fake);
  await until(async () => (await gaps(host.stack)).length === 2, { message: "both gaps" });
  expect([...(await inventoryKinds(host.stack))].sort()).toEqual(described);
  expect([...(await gaps(host.stack))].sort()).toEqual(oneGapEach);
  expect(sessionsOf(await host.stack.events())).toHaveLength(1);
  expect(kindsOf(await host.stack.events())).not.toContain("session.ended");
  expect(await lists(host.stack)).toEqual(before);

  host.goOn();
  await until(async () => (await inventoryKinds(host.stack)).includes("pods pod.exited"), { message: "the pod's end" });
  expect((await inventoryKinds(host.stack)).slice(2)).toEqual(["pods app.exited", "pods pod.exited"]);
});

it("another data directory is another session, and switching back continues the first one", async () => {
  await using host = await lookedAt();
  await restarted(host.fake, () => host.fake.setDir("/mnt/other"));
  await until(async () => (await inventoryEvents(host.stack)).length === 4, {
    message: "the other host to be described",
  });
  const [one, other] = sessionsOf(await host.stack.events());
  expect(other).toBeDefined();
  expect((await inventoryEvents(host.stack)).map(({ session, kind }) => [session, kind])).toEqual([
    ...[one, one].map((session) => [session, "inventory.described"]),
    ...[other, other].map((session) => [session, "inventory.described"]),
  ]);

  await restarted(host.fake, () => host.fake.setDir(dir));
  host.goOn();
  await until(async () => (await inventoryEvents(host.stack)).length === 6, { message: "the pod's end" });
  const events = await host.stack.events();
  expect(sessionsOf(events)).toEqual([one, other]);
  expect(
    (await inventoryEvents(host.stack)).slice(4).map(({ session, kind, ordinal }) => [session, kind, ordinal]),
  ).toEqual([
    [one, "app.exited", 2n],
    [one, "pod.exited", 3n],
  ]);
  expect(holes(events)).toEqual([]);
  const gapSessions = events.flatMap(({ event }) => (event.kind === "session.gap" ? [event.session] : []));
  expect(gapSessions).toEqual([one, one]);
});

it("an empty host after a reconnect is not believed, and its reappearance records no change", async () => {
  await using host = await lookedAt();
  const before = await lists(host.stack);
  host.goOn();
  await until(async () => (await inventoryKinds(host.stack)).includes("pods pod.exited"), { message: "the pod's end" });
  const after = await lists(host.stack);
  expect(after).not.toEqual(before);
  await restarted(host.fake, () => host.fake.setEmpty(true));
  await until(async () => (await gaps(host.stack)).length === 2, { message: "both gaps" });
  expect(await lists(host.stack)).toEqual(after);
  host.fake.setEmpty(false);
  await pollsLater(host.fake);
  await restarted(host.fake);
  await until(async () => (await gaps(host.stack)).length === 4, { message: "the gaps of that" });
  expect(await lists(host.stack)).toEqual(after);
  expect((await inventoryKinds(host.stack)).slice(2)).toEqual(["pods app.exited", "pods pod.exited"]);
});

it("a host that stays empty for the configured time is believed, and its pods' ends are inferred after a gap", async () => {
  await using host = await lookedAt({ extinction_hold: "300ms" });
  host.goOn();
  await until(async () => (await inventoryEvents(host.stack)).length === 4, { message: "the pod's end" });
  await restarted(host.fake, () => host.fake.setEmpty(true));
  const isOver = async () =>
    (await inventoryKinds(host.stack)).filter((kind) => /removed|collected/.test(kind)).length === 4;
  await until(isOver, { message: "all to be gone" });
  const removed = (await inventoryEvents(host.stack)).slice(4);
  expect(removed.every(({ inferred, not_before }) => inferred && not_before !== undefined)).toBe(true);
  const kindsOn = (channel: string) => removed.flatMap(({ channel: on, kind }) => (on === channel ? [kind] : []));
  expect(kindsOn("images")).toEqual(["image.removed", "image.removed"]);
  // The first pod's end was recorded before.
  expect(kindsOn("pods")).toEqual(["pod.collected", "app.exited", "pod.exited", "pod.collected"]);
  const order = (await host.stack.events()).flatMap(({ event }) => {
    const isRemoved = ["image.removed", "pod.collected"].includes(event.kind);
    return event.kind === "session.gap" ? [`gap ${event.subject}`] : isRemoved ? [event.channel] : [];
  });
  for (const channel of ["pods", "images"]) {
    // One gap since the previous connection, and one before everything disappeared.
    expect(order.filter((one) => one.endsWith(channel))).toEqual([
      ...[`gap ${channel}`, `gap ${channel}`],
      ...[channel, channel],
    ]);
  }
  const empty = { pods: { result: [] }, images: { result: [] } };
  expect(await lists(host.stack)).toEqual(empty);
});
