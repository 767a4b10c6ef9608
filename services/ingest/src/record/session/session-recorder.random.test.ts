import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { sourceName } from "@tapedeck/shared/source";
import { searched } from "@tapedeck/shared/testing/searches";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import fc from "fast-check";
import { expect, it } from "vitest";
import { LostRaceError } from "../journal/settle.ts";
import { type FakeLog, type Fate, fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { openSessionRecorder, type SessionRecorder } from "./session-recorder.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const channels = ["a", "b"] as const;
type Channel = (typeof channels)[number];
const normalizer = plainNormalizer({ name: "a", replays: true }, { name: "b", replays: true });

type What = NonNullable<Item["what"]>;

/** What may happen, in any order. */
type RecorderAction =
  | { readonly do: "say"; readonly channel: Channel; readonly facts: number }
  /** Bytes without a time, the same again and again. */
  | { readonly do: "garble"; readonly channel: Channel }
  /** The labels change, each time to others. */
  | { readonly do: "label" }
  | { readonly do: "pause" }
  | { readonly do: "reconnect"; readonly seed: number }
  | { readonly do: "next process"; readonly known: boolean }
  | { readonly do: "push"; readonly items: number }
  | { readonly do: "kill recorder" }
  /** What it had not brought to the log is lost with it; it dials again. */
  | { readonly do: "kill tap and recorder"; readonly seed: number }
  | { readonly do: "acknowledge" }
  | { readonly do: "land late" };

const channel = fc.constantFrom(...channels);
const steps: fc.Arbitrary<RecorderAction[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ do: fc.constant("say" as const), channel, facts: fc.integer({ min: 0, max: 2 }) }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant("garble" as const), channel }) },
    { weight: 2, arbitrary: fc.constant<RecorderAction>({ do: "label" }) },
    { weight: 2, arbitrary: fc.constant<RecorderAction>({ do: "pause" }) },
    fc.record({ do: fc.constant("reconnect" as const), seed: fc.nat() }),
    fc.record({ do: fc.constant("next process" as const), known: fc.boolean() }),
    { weight: 4, arbitrary: fc.record({ do: fc.constant("push" as const), items: fc.integer({ min: 1, max: 8 }) }) },
    { weight: 2, arbitrary: fc.constant<RecorderAction>({ do: "kill recorder" }) },
    fc.record({ do: fc.constant("kill tap and recorder" as const), seed: fc.nat() }),
    { weight: 2, arbitrary: fc.constant<RecorderAction>({ do: "acknowledge" }) },
    fc.constant<RecorderAction>({ do: "land late" }),
  ),
  { maxLength: 40, size: "max" },
);

const fates = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<Fate>({ lands: "now", answers: true }) },
    fc.constant<Fate>({ lands: "now", answers: false }),
    fc.constant<Fate>({ lands: "late", answers: false }),
    fc.constant<Fate>({ lands: "never", answers: false }),
  ),
  { maxLength: 10, size: "max" },
);

type Process = Record<Channel, string[]>;

/** An upstream, its tap and the recorders that follow one another, on a network that loses things. */
function world(fate: readonly Fate[], shuffled: boolean) {
  let turn = 0;
  const log: FakeLog = fakeLog(() => fate[turn++] ?? { lands: "now", answers: true });
  const processes: Process[] = [{ a: [], b: [] }];
  const items: (Item & { readonly process: Process })[] = [];
  let now = 1_000;
  let upstreamClock = 0;
  let label = 0;
  let connection = 0;
  let connected = false;
  let acknowledged = 0n;
  let pushed = 0n;
  let index = 0n;
  let recording: SessionRecorder | undefined;

  const emit = (what: What) => {
    index += 1n;
    items.push({ index, connection: `C${connection}`, at: timestampOfMs(now), what, process: current() });
  };
  const frame = (channel: Channel, text: string): What => ({
    $case: "frame",
    value: { channel, bytes: Buffer.from(text), more: false },
  });
  const current = () => processes.at(-1) as Process;

  const dial = (seed: number) => {
    connection++;
    connected = true;
    now += 1;
    emit({ $case: "dialled", value: { address: "here", channels: [...channels] } });
    const { a, b } = current();
    // Each channel in its own order (or not), the channels in turns.
    const orders = { a: shuffled ? shuffle(a, seed) : a, b: shuffled ? shuffle(b, seed + 1) : b };
    for (let i = 0; i < Math.max(a.length, b.length); i++) {
      for (const channel of channels) {
        const text = orders[channel][i];
        if (text !== undefined) emit(frame(channel, text));
      }
    }
  };
  const hangUp = (process_ended: boolean) => {
    if (connected) emit({ $case: "closed", value: { reason: "cut", process_ended } });
    connected = false;
  };
  const write = (channel: Channel, text: string) => {
    current()[channel].push(text);
    if (connected) emit(frame(channel, text));
  };

  async function open(): Promise<SessionRecorder> {
    const hello = {
      developer: "a",
      project: "p",
      upstream: "skaffold",
      tap: "T",
      labels: {},
      redact: "off",
      settings: {},
    };
    pushed = acknowledged;
    return openSessionRecorder({
      log: { writer: log, reader: log.reader },
      source,
      normalizer,
      hello: { ...hello, first_index: acknowledged + 1n },
      signal: new AbortController().signal,
    });
  }
  async function kill() {
    await recording?.[Symbol.asyncDispose]();
    recording = undefined;
  }
  /** Pushes what is next; a recorder that lost a race is followed by another. */
  async function push(count: number) {
    for (let i = 0; i < count; i++) {
      recording ??= await open();
      const item = items.find((one) => one.index > pushed);
      if (item === undefined) return;
      try {
        await recording.take(item);
        pushed = item.index;
      } catch (cause) {
        expect(cause).toBeInstanceOf(LostRaceError);
        await kill();
      }
    }
  }

  return {
    log,
    processes,
    /** The labels that the tap has not lost. */
    labels: () => items.flatMap(({ what }) => (what?.$case === "labelled" ? [Number(what.value.labels.number)] : [])),
    async step(step: RecorderAction) {
      now += 3;
      switch (step.do) {
        case "say":
          return write(step.channel, `${++upstreamClock} said${step.facts === 0 ? "" : `+${step.facts}`}`);
        case "garble":
          // Not as the first of a process: nothing would distinguish it from the next one. And each of its own: two
          // equal frames without a time can't be distinguished from one that is repeated
          // (docs/decisions/0005-frames-are-known-by-their-bytes.md), and now and then a crash right after a reconnect
          // then costs the second.
          return current()[step.channel].length === 0 ? undefined : write(step.channel, `?${++upstreamClock}`);
        case "label":
          // Without a frame it has no session.
          if (!connected || !spoke(current())) return;
          return emit({ $case: "labelled", value: { labels: { number: `${++label}` }, since: undefined } });
        case "pause":
          now += 300;
          return;
        case "reconnect":
          hangUp(false);
          return dial(step.seed);
        case "next process":
          // Only what was seen can be recorded.
          if (!connected) dial(0);
          hangUp(step.known);
          processes.push({ a: [], b: [] });
          return dial(0);
        case "push":
          return await push(step.items);
        case "kill recorder":
          return await kill();
        case "kill tap and recorder":
          await kill();
          // What an earlier process said is in the tap only, and nobody will say it again.
          if (items.some((item) => item.index > acknowledged && item.process !== current())) return;
          // The spill's memory is gone; indexes go on from what was committed.
          items.splice(items.findIndex((item) => item.index > acknowledged) >>> 0);
          connected = false;
          return dial(step.seed);
        case "acknowledge":
          acknowledged = recording?.committed() ?? acknowledged;
          return;
        case "land late":
          return log.landLate();
      }
    },
    finish,
  };

  async function finish() {
    if (!connected) dial(1);
    now += 1_000;
    for (;;) {
      // All of it, whatever races are lost: to advance in the midst of a replay is to say that the rest does not follow.
      do await push(items.length);
      while (recording === undefined || pushed < index);
      const done: SessionRecorder = recording;
      // It may lose a race here as in a push.
      const ended = done.advance(timestampOfMs(now + 5_000)).then(() => done.drained());
      const over = await ended.then(
        () => true,
        (cause: unknown) => {
          expect(cause).toBeInstanceOf(LostRaceError);
          return false;
        },
      );
      if (over && pushed === index) break;
      if (!over) await kill();
    }
    log.landLate();
    acknowledged = recording?.committed() ?? acknowledged;
  }
}

/** The frames in the log by process, as each session's channels have them. */
function sessionsOf(log: FakeLog): Process[] {
  const sessions = new Map<string, Process>();
  for (const { event } of log.recorded()) {
    const { session, channel, part, original } = event;
    if (channel === "tapedeck" || part !== 0) continue;
    const process = sessions.get(session) ?? { a: [], b: [] };
    sessions.set(session, process);
    process[channel as Channel].push(original?.bytes.toString() ?? "");
  }
  return [...sessions.values()];
}

function labelsOf(log: FakeLog): number[] {
  return log
    .recorded()
    .flatMap(({ event: { kind, detail } }) =>
      kind === "session.labelled" && detail?.$case === "session_detail" ? [Number(detail.value.labels.number)] : [],
    );
}

/** The log may have more than the tap, which loses what it does not know to be recorded. */
function expectLabelsOnce(log: FakeLog, labels: readonly number[]): void {
  const recorded = labelsOf(log);
  expect(recorded).toEqual([...new Set(recorded)].toSorted((a, b) => a - b));
  expect(recorded).toEqual(expect.arrayContaining([...labels]));
}

function expectNumbersWithoutHoles(log: FakeLog): void {
  const last = new Map<string, number>();
  for (const { event } of log.recorded()) {
    const key = event.channel === "tapedeck" ? "tapedeck" : `${event.session}.${event.channel}`;
    const next = (last.get(key) ?? 0) + 1;
    expect([event.id, Number(event.ordinal)]).toEqual([event.id, next]);
    // The reader's memory counts facts, so it was brought up rightly wherever it began anew.
    if (event.channel !== "tapedeck") expect(event.summary).toBe(`fact ${next}`);
    last.set(key, next);
  }
}

const runs = searched({ short: 25, long: 1_000 });
const spoke = ({ a, b }: Process) => a.length + b.length > 0;

it("whatever is lost and killed, the log has what each process said, once and in order", async () => {
  await fc.assert(
    fc.asyncProperty(steps, fates, async (steps, fates) => {
      const { log, processes, labels, step, finish } = world(fates, false);
      for (const one of steps) await step(one);
      await finish();
      expect(sessionsOf(log)).toEqual(processes.filter(spoke));
      expectLabelsOnce(log, labels());
      expectNumbersWithoutHoles(log);
    }),
    { numRuns: runs },
  );
});

it("also when replays come in another order each time", async () => {
  const sorted = (process: Process): Process => ({ a: process.a.toSorted(), b: process.b.toSorted() });
  await fc.assert(
    fc.asyncProperty(steps, fates, async (steps, fates) => {
      const { log, processes, step, finish } = world(fates, true);
      for (const one of steps) await step(one);
      await finish();
      expect(sessionsOf(log).map(sorted)).toEqual(processes.filter(spoke).map(sorted));
      expectNumbersWithoutHoles(log);
    }),
    { numRuns: runs },
  );
});

function shuffle(texts: readonly string[], seed: number): string[] {
  return texts
    .map((text, i) => ({ text, at: Math.sin(seed + i * 7.3) }))
    .sort((x, y) => x.at - y.at)
    .map(({ text }) => text);
}
