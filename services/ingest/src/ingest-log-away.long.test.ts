import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { bytesOf, framesOf, holes, openLogReader, skaffoldSource, startHarnessOn } from "./testing/ingest-harness.ts";

const long = `${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`;

it("a log that is away is waited for, while the upstream is drained", async () => {
  const recording = loadRecording(long);
  await using late = await startTestNats();
  await late.stop();
  await using fake = await startFakeSkaffold({ recording });
  await using harness = await startHarnessOn(late.url, "late", fake.address);
  await using standby = await startHarnessOn(late.url, "late", fake.address, { standby: true });
  await until(() => fake.health.v1.opened === 1, { message: "Skaffold to be dialled without the log" });
  await fake.play();
  expect(fake.peers.size).toBe(1);
  await until(() => standby.ingest.status()[0]?.state === "waiting for the log", { message: "the standby to wait" });

  await late.restart();
  await using lateBook = await openLogReader(late.url);
  const events = () => lateBook.events(skaffoldSource("late"));
  await until(
    async () => {
      expect(framesOf(await events(), "v1")).toEqual(bytesOf(recording, "v1"));
      expect(framesOf(await events(), "v2")).toEqual(bytesOf(recording, "v2"));
      return true;
    },
    { message: "all of it" },
  );
  await until(() => harness.ingest.status()[0]?.waiting === 0, { message: "the spill to be empty" });
  expect(fake.peers.size).toBe(1);
});

it("kills of NATS in the middle of it lose nothing and repeat nothing", async () => {
  const recording = loadRecording(long);
  await using fragile = await startTestNats({ syncAlways: true });
  await using fake = await startFakeSkaffold({ recording });
  await using fragileBook = await openLogReader(fragile.url);
  await using _ = await startHarnessOn(fragile.url, "fragile", fake.address);
  const events = () => fragileBook.events(skaffoldSource("fragile"));
  const all = recording.messages.v1.length;
  for (let round = 1; round <= 4; round++) {
    await fake.playUntil({ v1: Math.floor((all * round) / 4) });
    await fragile.kill();
    await fragile.restart();
  }
  await fake.play();
  await until(
    async () => {
      expect(framesOf(await events(), "v1")).toEqual(bytesOf(recording, "v1"));
      expect(framesOf(await events(), "v2")).toEqual(bytesOf(recording, "v2"));
      return true;
    },
    { message: "all of it" },
  );
  expect(holes(await events())).toEqual([]);
  expect(fake.peers.size).toBe(1);
});
