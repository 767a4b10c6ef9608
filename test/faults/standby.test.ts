import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import type { LogWriter, NewEvent } from "@tapedeck/shared/log/log";
import { messageSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { ingestHarness, logs, sentFrames } from "../harness/ingest-harness.ts";
import { framesOf, holes, kindsOf } from "./recorded-events.ts";

const folder = "01-dev-success-3-artifacts-5-iterations";

it("a second ingest never dials while the first lives, and continues where the killed one stopped", async () => {
  // Kills ingest while the stream is idle, when the fake may hang as easily as the real one.
  await using harness = await ingestHarness(folder);
  const { fake, recording } = harness;
  const first = await harness.ingest();
  await until(() => fake.peers.size === 1, { message: "the first to dial" });
  const second = await harness.ingest();
  await logs(second, "standing by");
  await harness.playTo(0.5);
  await harness.recorded();
  expect(fake.peers.size).toBe(1);

  await first.kill();
  const killedAt = Date.now();
  await harness.playTo(0.7);
  await until(() => fake.peers.size === 2, { message: "the second to dial" });
  await harness.recorded();
  const connected = (await harness.events()).findLast(({ event }) => event.kind === "upstream.connected");
  // The lease lasts six seconds, and a standby checks it every second, twice.
  console.log(`taken over ${(connected?.recordedAt.getTime() ?? 0) - killedAt} ms after the kill`);

  await first.start();
  await logs(first, "standing by");
  await fake.play();
  await harness.recorded();
  expect(fake.peers.size).toBe(2);
  expect(fake.hung).toEqual([]);
  const events = await harness.events();
  expect(framesOf(events, "v1")).toEqual(sentFrames(recording, "v1"));
  expect(framesOf(events, "v2")).toEqual(sentFrames(recording, "v2"));
  expect(holes(events)).toEqual([]);
  expect(kindsOf(events).filter((kind) => kind === "session.started")).toHaveLength(1);
});

it("a second writer is refused, and recording continues after a foreign write that came first", async () => {
  await using harness = await ingestHarness(folder);
  const { fake, recording, writer, source } = harness;
  await harness.ingest();
  await until(() => fake.peers.size === 1, { message: "the tap to dial" });
  const rounds = 8;
  for (let round = 1; round <= rounds; round++) {
    await harness.playTo((round - 0.5) / rounds);
    await harness.recorded();
    const stale = await writer.lastOf(source);
    // Another writer publishes at the same time; both expect the same sequence, and one of them gets it.
    const playing = harness.playTo(round / rounds);
    await intrude(writer, source);
    await playing;
    await harness.recorded();
    expect(await writer.publish(source, "intruder", [await strange(writer, source)], stale?.seq ?? 0)).toEqual({
      outcome: "wrong-sequence",
    });
  }
  await fake.play();
  await harness.recorded();
  const events = await harness.events();
  expect(framesOf(events, "v1")).toEqual(sentFrames(recording, "v1"));
  expect(framesOf(events, "v2")).toEqual(sentFrames(recording, "v2"));
  expect(holes(events)).toEqual([]);
  expect(kindsOf(events).filter((kind) => kind === "source.checkpoint")).toHaveLength(rounds);
  // Whatever happened to the writes, no connection was closed.
  expect(fake.peers.size).toBe(1);
  expect(kindsOf(events).filter((kind) => kind === "upstream.connected")).toHaveLength(1);
});

/** Writes until it has won once, like an ingest that believes it owns the source. */
async function intrude(writer: LogWriter, source: SourceName): Promise<void> {
  await until(
    async () => {
      const last = await writer.lastOf(source);
      const { outcome } = await writer.publish(source, "intruder", [await strange(writer, source)], last?.seq ?? 0);
      return outcome === "acknowledged";
    },
    { message: "the intruder to come first" },
  );
}

async function strange(writer: LogWriter, source: SourceName): Promise<NewEvent> {
  const { cursor } = (await writer.lastOf(source))?.mark ?? { cursor: { session: "", ordinals: {}, frames: {} } };
  const next = (numbers: Readonly<Record<string, number>>) => (numbers.tapedeck ?? 0) + 1;
  const event = Event.fromPartial({
    id: `${source}.tapedeck.${next(cursor.ordinals)}`,
    source,
    channel: "tapedeck",
    ordinal: BigInt(next(cursor.ordinals)),
    frame_ordinal: BigInt(next(cursor.frames)),
    kind: "source.checkpoint",
  });
  return {
    subject: messageSubject(source, "tapedeck", event.kind, "facts"),
    session: event.session,
    event: encodeEvent(event),
    cursor: {
      ...cursor,
      ordinals: { ...cursor.ordinals, tapedeck: next(cursor.ordinals) },
      frames: { ...cursor.frames, tapedeck: next(cursor.frames) },
    },
  };
}
