import type { LogWriter, NewEvent } from "@tapedeck/shared/log/log";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it, vi } from "vitest";
import { type FakeLog, type Fate, fakeLog } from "../testing/fake-log.ts";
import { LostRaceError, settle } from "./settle.ts";
import { SourceWriter } from "./writer.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const retry = { first: 0, max: 1 };

const events = (first: number, last: number): NewEvent[] =>
  Array.from({ length: last - first + 1 }, (_, i) => ({
    subject: "tapedeck.v2.acme.alice.shop.skaffold.frames.text",
    session: "S",
    event: new Uint8Array(10).fill(first + i),
    cursor: { session: "S", ordinals: { v1: first + i, tapedeck: 1 }, frames: { v1: first + i } },
  }));
const ordinals = ({ stored }: FakeLog) => stored.map(({ written }) => written.cursor.ordinals.v1);
const messages = ({ stored }: FakeLog) => new Set(stored.map(({ seq }) => seq)).size;

const well: Fate = { lands: "now", answers: true };
const lost: Fate = { lands: "now", answers: false };
const late: Fate = { lands: "late", answers: false };
const never: Fate = { lands: "never", answers: false };
const refused: Fate = { lands: "never", answers: true, refuses: true };

/** The steps at which the publishing of a batch can fail. `tries`: how often it is published. */
const steps: readonly { readonly step: string; readonly fates: readonly Fate[]; readonly tries: number }[] = [
  { step: "before the log takes it, and the log says so", fates: [refused], tries: 2 },
  { step: "before it arrives", fates: [never], tries: 2 },
  { step: "on the way, and it lands before the second try", fates: [late], tries: 2 },
  { step: "on the way, and the second try is lost", fates: [late, never], tries: 2 },
  { step: "after it is stored, with the acknowledgement", fates: [lost], tries: 1 },
  { step: "nowhere", fates: [], tries: 1 },
];

/** A log whose publishes meet these fates in turn. What is late lands just before the next publish. */
function logOf(fates: readonly Fate[]) {
  let tries = 0;
  const log: FakeLog = fakeLog(() => fates[tries++] ?? well, { onPublish: () => log.landLate() });
  return { log, tries: () => tries };
}

describe("a batch", () => {
  it.each(steps)("whose publishing fails $step is in the log once, as one message", async ({ fates, tries: max }) => {
    const { log, tries } = logOf(fates);
    await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
    await writer.reached(writer.append(events(1, 3)));
    log.landLate();
    expect(ordinals(log)).toEqual([1, 2, 3]);
    expect(messages(log)).toBe(1);
    expect(tries()).toBe(max);
  });

  it.each(steps)(
    "whose writer is killed when it has failed $step is there whole or not at all, and the next writer adds the rest",
    async ({ fates }) => {
      const { log, tries } = logOf(fates);
      const killed = new SourceWriter({
        log,
        source,
        writer: "A",
        afterSeq: 0,
        retry: { first: 60_000, max: 60_000 },
      });
      killed.append(events(1, 3));
      await until(() => tries() > 0, { message: "the publish" });
      await killed[Symbol.asyncDispose]();
      expect([0, 3]).toContain(log.stored.length);

      for (let next = 1; ordinals(log).at(-1) !== 5; next++) {
        expect(next).toBeLessThan(4);
        const [last, done] = [log.stored.at(-1)?.seq ?? 0, ordinals(log).at(-1) ?? 0];
        await using writer = new SourceWriter({ log, source, writer: `B${next}`, afterSeq: last, retry });
        await writer.reached(writer.append(events(done + 1, 5))).catch((cause) => {
          expect(cause).toBeInstanceOf(LostRaceError);
        });
      }
      log.landLate();
      expect(ordinals(log)).toEqual([1, 2, 3, 4, 5]);
    },
  );

  it.each([
    { when: "before it is published", fates: [], lands: 1 },
    { when: "while its publish is on the way", fates: [late], lands: 2 },
    { when: "after the log refused it", fates: [refused], lands: 2 },
    { when: "after it never arrived", fates: [never], lands: 2 },
  ])("is not written where another writer writes $when", async ({ fates, lands }) => {
    let tries = 0;
    const log: FakeLog = fakeLog(() => (tries > 0 ? fates[tries - 1] : undefined) ?? well, {
      onPublish: async ([first]) => {
        if (first?.cursor.ordinals.v1 === 9) return;
        tries++;
        const fate = tries;
        if (fate !== lands) return;
        tries = 0;
        await log.publish(source, "B", events(9, 9), 0);
        tries = fate;
      },
    });
    await using writer = new SourceWriter({ log, source, writer: "W", afterSeq: 0, retry });
    writer.append(events(1, 3));
    expect(await writer.ended).toBeInstanceOf(LostRaceError);
    log.landLate();
    expect(ordinals(log)).toEqual([9]);
  });
});

it("a message that may have expired is not written again, also where the clock was set back meanwhile", async () => {
  let ranMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => ranMs);
  vi.spyOn(Date, "now").mockImplementation(() => 1_795_000_000_000 - ranMs);
  try {
    let tries = 0;
    const log: LogWriter = {
      async publish() {
        ranMs += 3_600_000;
        return ++tries > 1 ? { outcome: "acknowledged", seq: 8 } : { outcome: "unknown", cause: new Error("silent") };
      },
      lastOf: async () => undefined,
    };
    const message = { events: events(1, 1).map((event) => ({ ...event, ttlSeconds: 3_600 })) };
    const { signal } = new AbortController();
    const written = settle({ log, source, writer: "W", retry }, message, 0, signal);
    await expect(written).rejects.toBeInstanceOf(LostRaceError);
    expect(tries).toBe(1);
  } finally {
    vi.restoreAllMocks();
  }
});
