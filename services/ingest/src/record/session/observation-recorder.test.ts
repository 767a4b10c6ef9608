import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { SourceName } from "@tapedeck/shared/source";
import { expect, it } from "vitest";
import { type ObservationOutcome, type Observing, yieldPoint } from "../../normalize/inventory/observing.ts";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { type FakeLog, fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { type PollingTap, pollingTap } from "../testing/polling-tap.ts";

const source = "default/h1/host/rkt" as SourceName;
const well = () => ({ lands: "now", answers: true }) as const;

/**
 * A host of words: emits each word that comes or goes, and describes itself in parts of one word, again after three
 * facts.
 */
const words: Observing = {
  channels: ["pods", "images"],
  mask: (_, bytes) => ({ bytes: Buffer.from(Buffer.from(bytes).toString().replace("SECRET", "******")), redacted: 1 }),
  watch({ mask }) {
    const known = new Map<string, Set<string>>();
    const since = new Map<string, number>();
    let isNew = false;
    return {
      resume({ channel, kind, subject, original }) {
        const all = known.get(channel) ?? new Set();
        known.set(channel, all);
        since.set(channel, kind === "inventory.described" ? 0 : (since.get(channel) ?? 0) + 1);
        if (kind === "pod.collected") all.delete(subject);
        else if (original !== undefined) all.add(original.bytes.toString());
      },
      connected() {
        isNew = true;
      },
      observe(channel, { result }, at) {
        if (result?.$case !== "all") return [];
        const now = new Set(Buffer.from(mask("words", result.value).bytes).toString().split(" "));
        const before = known.get(channel);
        known.set(channel, now);
        const of = (text: string) => ({ type: "word", bytes: Buffer.from(text), redacted: 0 });
        const describe = (): ObservationOutcome[] => {
          since.set(channel, 0);
          return [...now].map((word, part) => ({
            what: "frame",
            original: of(word),
            observedAt: at,
            facts: [
              {
                kind: "inventory.described",
                summary: word,
                detail: {
                  $case: "host",
                  value: { part, parts: now.size, entries: now.size, texts: [], gone: [], returned: [] },
                },
              },
            ],
          }));
        };
        if (before === undefined) isNew = false;
        if (before === undefined) return describe();
        const found: ObservationOutcome[] = [
          ...[...now.difference(before)].map(
            (word): ObservationOutcome => ({
              what: "frame",
              original: of(word),
              observedAt: at,
              facts: [
                { kind: "pod.prepared", subject: word, summary: word },
                { kind: "pod.started", subject: word, summary: word },
              ],
            }),
          ),
          ...[...before.difference(now)].map(
            (word): ObservationOutcome => ({
              what: "frame",
              observedAt: at,
              facts: [{ kind: "pod.collected", subject: word, summary: word }],
            }),
          ),
        ];
        const gap: ObservationOutcome[] = isNew ? [{ what: "gap", reason: "away", after: undefined, until: at }] : [];
        isNew = false;
        since.set(
          channel,
          (since.get(channel) ?? 0) + found.flatMap((one) => (one.what === "frame" ? one.facts : [])).length,
        );
        return [...gap, ...found, ...((since.get(channel) ?? 0) >= 3 ? describe() : [])];
      },
    };
  },
};

const normalizer: Normalizer = { ...plainNormalizer(), observing: words };

const events = (log: FakeLog): Event[] => log.recorded().map(({ event }) => event);
const reported = (log: FakeLog) =>
  events(log)
    .filter(({ channel }) => channel !== "tapedeck")
    .map(({ channel, ordinal, kind, subject }) => `${channel} ${ordinal} ${kind} ${subject}`.trim());
/** Without a description that a crash cut off, which is begun anew, and so without the numbers. */
const reportedWhole = (log: FakeLog) => {
  const all = events(log).filter(({ channel }) => channel !== "tapedeck");
  const partOf = ({ detail }: Event) => (detail?.$case === "host" ? detail.value : undefined);
  const isWhole = (at: number): boolean => {
    const part = all[at] && partOf(all[at]);
    if (part === undefined) return true;
    const own = all.slice(at - part.part, at - part.part + part.parts);
    return own.length === part.parts && own.every((one, index) => partOf(one)?.part === index);
  };
  return all.filter((_, at) => isWhole(at)).map(({ channel, kind, subject }) => `${channel} ${kind} ${subject}`.trim());
};
const sessions = (log: FakeLog) => new Set(events(log).flatMap(({ session }) => (session === "" ? [] : [session])));

it("a session is what the upstream calls itself, and its first observations describe it", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, { source, normalizer });
  await tap.dial(0, "C1", "/var/lib/rkt");
  await tap.observation(10, "C1", "pods", "a SECRET");
  await tap.observation(11, "C1", "images", "i");
  await tap.observation(20, "C1", "pods", "a SECRET b");
  await tap.settled();
  expect(events(log).flatMap(({ channel, kind }) => (channel === "tapedeck" ? [kind] : []))).toEqual([
    "source.added",
    "upstream.connected",
    "session.started",
    "session.identified",
  ]);
  expect(reported(log)).toEqual([
    "pods 1 inventory.described",
    "pods 2 inventory.described",
    "images 1 inventory.described",
    "pods 3 pod.prepared b",
    "pods 4 pod.started b",
  ]);
  const prepared = events(log).find(({ kind }) => kind === "pod.prepared");
  expect(prepared).toMatchObject({ frame_ordinal: 3n, part: 0, observed_at: { seconds: 0n, nanos: 20_000_000 } });
  expect(prepared?.original?.bytes.toString()).toBe("b");
  expect(events(log)[5]?.original?.bytes.toString()).toBe("******");
});

it("another connection to the same goes on with it; to another it is another session, and back again the first", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, { source, normalizer });
  await tap.dial(0, "C1", "/one");
  await tap.observation(1, "C1", "pods", "a b");
  await tap.lost(2, "C1");
  await tap.dial(3, "C2", "/one");
  await tap.observation(4, "C2", "pods", "a");
  await tap.lost(5, "C2");
  await tap.dial(5, "C3", "/two");
  await tap.observation(6, "C3", "pods", "z");
  await tap.lost(7, "C3");
  await tap.dial(7, "C4", "/one");
  await tap.observation(8, "C4", "pods", "a c");
  await tap.settled();
  expect(sessions(log).size).toBe(2);
  expect(reported(log)).toEqual([
    "pods 1 inventory.described",
    "pods 2 inventory.described",
    "pods 3 pod.collected b",
    "pods 1 inventory.described",
    "pods 4 pod.prepared c",
    "pods 5 pod.started c",
    "pods 6 inventory.described",
    "pods 7 inventory.described",
  ]);
  const gaps = events(log).filter(({ kind }) => kind === "session.gap");
  expect(gaps.map(({ subject }) => subject)).toEqual(["pods", "pods"]);
});

it("a recorder that starts again remembers from the log, whatever the tap pushes again", async () => {
  const observations = ["a", "a b", "b", "b c", "b c d", "d"];
  const play = async (crashes: (tap: PollingTap, index: number) => Promise<void>) => {
    const log = fakeLog(well);
    await using tap = pollingTap(log, { source, normalizer });
    await tap.dial(0, "C1", "/one");
    for (const [i, all] of observations.entries()) {
      await tap.observation(10 * (i + 1), "C1", "pods", all);
      await crashes(tap, i);
    }
    await tap.settled();
    return reportedWhole(log);
  };
  const without = await play(async () => {});
  expect(without.filter((line) => line.includes("described")).length).toBeGreaterThan(2);
  for (let crash = 0; crash < observations.length; crash++) {
    for (let from = 1; from <= crash + 3; from++) {
      const log = await play(async (tap, i) => {
        if (i === crash) await tap.crash(from);
      });
      expect(log, `crash after look ${crash}, pushed again from ${from}`).toEqual(without);
    }
  }
});

it("a description that a crash cut off does not count", async () => {
  const log = fakeLog(well);
  {
    await using tap = pollingTap(log, { source, normalizer });
    await tap.dial(0, "C1", "/one");
    await tap.observation(1, "C1", "pods", "a b");
    await tap.observation(2, "C1", "pods", "a b c d");
    await tap.settled();
  }
  // c and d make four facts, so all was described again: cut in the middle.
  const described = log.recorded().map(({ subject }) => subject.endsWith(".inventory"));
  expect(described.slice(-4)).toEqual([true, true, true, true]);
  const cut = fakeLog(well);
  for (const { writer, written } of log.stored.slice(0, -2)) {
    await cut.publish(source, writer, [written], (await cut.lastOf(source))?.seq ?? 0);
  }
  await using again = pollingTap(cut, { source, normalizer });
  await again.dial(5, "C2", "/one");
  await again.observation(6, "C2", "pods", "a b c");
  await again.settled();
  expect(reported(cut).filter((line) => line.includes("collected"))).toEqual(["pods 9 pod.collected d"]);
});

it("an observation that comes before its connection said whose it is, is refused", async () => {
  const log = fakeLog(well);
  await using tap = pollingTap(log, { source, normalizer });
  await tap.push(0, "C1", { $case: "dialled", value: { address: "h1:15441", channels: ["pods"] } });
  await expect(tap.observation(1, "C1", "pods", "a")).rejects.toThrow("an observation of pods came before identified");
});

it("an observation that is long to read lets others have their turn", async () => {
  const long: Observing = {
    channels: ["pods"],
    mask: (_, bytes) => ({ bytes, redacted: 0 }),
    watch: () => ({
      resume() {},
      connected() {},
      *observe(_, __, at) {
        for (let n = 0; n < 3; n++) {
          const start = performance.now();
          while (performance.now() - start < 10);
          yield { what: "frame", facts: [{ kind: "pod.changed", summary: String(n) }], observedAt: at };
        }
      },
    }),
  };
  await using tap = pollingTap(fakeLog(well), {
    source,
    normalizer: { ...plainNormalizer(), channels: [], observing: long },
  });
  await tap.dial(0, "C1", "h1");
  let turns = 0;
  const count = () => {
    turns += 1;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  await tap.observation(10, "C1", "pods", "");
  clearImmediate(turning);
  expect(turns).toBeGreaterThanOrEqual(3);
});

/** Holds the event loop for longer than a slice. */
function hold(): void {
  for (const until = performance.now() + 8; performance.now() < until; );
}

it("others have their turn at the pauses of an observation, and while recorded events are read back", async () => {
  let turns = 0;
  const count = () => {
    turns += 1;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  const seenBetween: number[] = [];
  const held = (): void => {
    seenBetween.push(turns);
    hold();
  };
  const long: Observing = {
    ...words,
    watch: () => ({
      resume: held,
      connected: () => {},
      *observe(_channel, _look, at) {
        for (let n = 0; n < 4; n++) {
          held();
          yield yieldPoint;
        }
        const facts = [{ kind: "pod.prepared", summary: "" }] as const;
        for (let n = 0; n < 4; n++) yield { what: "frame", facts, observedAt: at };
      },
    }),
  };
  const log = fakeLog(well);
  await using tap = pollingTap(log, { source, normalizer: { ...plainNormalizer(), observing: long } });
  await tap.dial(0, "C1", "h1");
  await tap.observation(10, "C1", "pods", "a");
  await tap.settled();
  expect(new Set(seenBetween).size).toBe(4);
  await tap.crash();
  seenBetween.length = 0;
  await tap.observation(20, "C1", "pods", "b");
  clearImmediate(turning);
  // Each of the four that was recorded, and the four pauses.
  expect(seenBetween).toHaveLength(8);
  expect(new Set(seenBetween).size).toBe(8);
});
