import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Hello, Imported, type Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { ended, type ForeignSession, foreignSession, frameOf, lost } from "@tapedeck/shared/testing/foreign-session";
import { until } from "@tapedeck/shared/testing/until";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { describe, expect, it } from "vitest";
import { openSourceJournal } from "../journal/source-journal.ts";
import { lostFromLog } from "../own-facts/gap-facts.ts";
import { sessionEnded, sessionStarted } from "../own-facts/session-facts.ts";
import { openSessionRecorder } from "../session/session-recorder.ts";
import { type FakeLog, type Fate, fakeLog } from "../testing/fake-log.ts";
import { plainNormalizer } from "../testing/plain-normalizer.ts";
import { idIn } from "./imported-id.ts";
import { openImport } from "./imported-session.ts";

const target = sourceName({ workspace: "acme", developer: "bob", project: "shop", upstream: "skaffold" });
const normalizer = plainNormalizer(...["v1", "v2", "logs"].map((name) => ({ name, replays: true })));
const well = (): Fate => ({ lands: "now", answers: true });

type Options = {
  readonly source?: SourceName;
  readonly labels?: Readonly<Record<string, string>>;
  readonly textTtl?: number;
  readonly missing?: Readonly<Record<string, bigint>>;
  /** Pushes this many of its events, and no end: the pusher is killed. */
  readonly cutAfter?: number;
  /** Each event in pieces of so many bytes. */
  readonly pieceBytes?: number;
};

type Foreign = Pick<ForeignSession, "session" | "source" | "events"> & { readonly origin?: string };

/** Pushes a session as the command does; gives how many messages were added. */
async function importInto(log: FakeLog, { session, source, origin, events }: Foreign, options: Options = {}) {
  const { source: to = target, labels = {}, textTtl, missing = {}, cutAfter, pieceBytes } = options;
  const over = new AbortController();
  const before = log.stored.length;
  const imported = Imported.fromPartial({
    session,
    source,
    missing,
    exported_at: { seconds: 1_900_000_000n, nanos: 0 },
    ...(origin !== undefined && { origin_session: origin }),
  });
  const hello = Hello.fromPartial({
    developer: "Bob",
    project: "Shop",
    upstream: "skaffold",
    tap: ulid(),
    labels,
    first_index: 1n,
  });
  await using importing = await openImport({
    log: { writer: log, reader: log.reader },
    source: to,
    normalizer,
    hello,
    imported,
    signal: over.signal,
    textTtl,
  });
  let index = 0n;
  const push = (what: Item["what"], isRest = false) => {
    if (!isRest) index++;
    return importing.take({ index, connection: "C", what });
  };
  const encoded = events.slice(0, cutAfter).map((event) => Buffer.from(Event.encode(event).finish()));
  if (pieceBytes === undefined) {
    // The events come in pieces of any size.
    for (let start = 0; start < encoded.length; start += 3) {
      await push({ $case: "recorded", value: { events: encoded.slice(start, start + 3), more: false } });
    }
  } else {
    for (const bytes of encoded) {
      for (let start = 0; start < bytes.byteLength; start += pieceBytes) {
        const more = start + pieceBytes < bytes.byteLength;
        const events = [bytes.subarray(start, start + pieceBytes)];
        await push({ $case: "recorded", value: { events, more } }, start > 0);
      }
    }
  }
  if (cutAfter !== undefined) {
    await until(() => log.stored.length >= before + importing.added, { message: "what has come to be in the log" });
    return 0;
  }
  await push({ $case: "recorded_end", value: { events: BigInt(events.length) } });
  await importing.drained();
  expect(importing.committed()).toBe(index);
  return importing.added;
}

function whole(options: Parameters<typeof foreignSession>[0] = {}): ForeignSession {
  const foreign = foreignSession(options);
  foreign.add(...frameOf("v1", "1 one", "build.started", "build.succeeded"), ...frameOf("logs", "hi", "log.written"));
  foreign.add({ kind: "session.gap" }, ...frameOf("v1", "2 two", "deploy.started"));
  foreign.add(...frameOf("logs", "there", "log.written"), ...frameOf("v2", "3 mixed", "log.written", "build.started"));
  // An event that a later version recorded has fields that are not known here.
  foreign.add({ ...lost, _unknownFields: { 15994: [Buffer.from([1, 120])] } }, ended);
  return foreign;
}

const eventsIn = (log: FakeLog, source = target): Event[] =>
  log.recorded().flatMap(({ event }) => (event.source === source ? [event] : []));
const reported = ({ kind, channel, ordinal }: Event) => `${channel} ${ordinal} ${kind}`;
/** What is the same in any Tapedeck: kind and bytes. */
const anywhere = (events: readonly Event[]) =>
  events.map((event) => {
    const places = event.channel === "tapedeck" ? { ordinal: 0n, frame_ordinal: 0n } : {};
    const { detail } = event;
    const started = detail?.$case === "session_detail" ? { ...detail.value, origin_session: undefined } : undefined;
    const reported = started === undefined ? {} : { detail: { $case: "session_detail", value: started } as const };
    const bytes = Event.encode({ ...event, id: "", source: "", session: "", ...places, ...reported }).finish();
    return `${event.kind} ${Buffer.from(bytes).toString("base64")}`;
  });
const idOf = (session: string) => idIn("acme", session);
const ofSession = (log: FakeLog, session: string, source = target) =>
  eventsIn(log, source).filter((event) => event.session === session);
/** The session that an export of the import gives. */
const exported = (log: FakeLog, { session: origin }: Foreign, source = target): Foreign => {
  const session = idIn(source.split("/")[0] ?? "", origin);
  return { session, origin, source, events: ofSession(log, session, source) };
};

it("a session comes as it was recorded, with what Tapedeck says about its coming", async () => {
  const log = fakeLog(well);
  const foreign = whole();
  expect(await importInto(log, foreign, { pieceBytes: 50 })).toBe(foreign.events.length + 3);
  expect(anywhere(ofSession(log, idOf(foreign.session)))).toEqual(anywhere(foreign.events));
  expect(eventsIn(log).map(reported)).toEqual([
    "tapedeck 1 source.added",
    "tapedeck 2 upstream.connected",
    "tapedeck 3 session.started",
    "tapedeck 4 session.identified",
    "v1 1 build.started",
    "v1 2 build.succeeded",
    "logs 1 log.written",
    "tapedeck 5 session.gap",
    "v1 3 deploy.started",
    "logs 2 log.written",
    "v2 1 log.written",
    "v2 2 build.started",
    "tapedeck 6 upstream.lost",
    "tapedeck 7 session.ended",
    "tapedeck 8 upstream.lost",
  ]);
  const last = log.stored.at(-1)?.written.cursor;
  expect(last).toMatchObject({
    session: idOf(foreign.session),
    ordinals: { v1: 3, v2: 2, logs: 2, tapedeck: 8 },
    frames: { v1: 2, v2: 1 },
  });
  for (const { id, channel, ordinal, session } of eventsIn(log)) {
    expect(id).toBe(channel === "tapedeck" ? `${target}.tapedeck.${ordinal}` : `${session}.${channel}.${ordinal}`);
  }
  expect(eventsIn(log)[1]).toMatchObject({
    session: "",
    detail: { value: { address: `session of ${foreign.source}` } },
  });
});

it("a session without an end gets one, at its last event", async () => {
  const log = fakeLog(well);
  const foreign = foreignSession();
  foreign.add(...frameOf("v1", "1 one", "build.started"));
  await importInto(log, foreign);
  const at = foreign.events[0]?.observed_at;
  expect(ofSession(log, idOf(foreign.session)).at(-1)).toMatchObject({
    kind: "session.ended",
    inferred: true,
    occurred_at: at,
    observed_at: at,
    detail: { value: { reason: "it was still running when it was exported (2030-03-17T17:46:40Z)" } },
  });
  expect(await importInto(log, foreign)).toBe(0);
});

it("the losses of another log are recorded as a gap, and not as losses of this one", async () => {
  const log = fakeLog(well);
  const foreign = foreignSession();
  const ordinals = [{ channel: "tapedeck", first: 1n, last: 900n }];
  const gap = lostFromLog({ after: "elsewhere-1", before: "elsewhere-2", ordinals, events: 900n });
  foreign.add({ kind: gap.kind, summary: gap.summary, detail: gap.detail }, ended);
  await importInto(log, foreign);
  const gaps = eventsIn(log).filter(({ kind }) => kind === "session.gap");
  expect(gaps.map(({ summary, detail }) => [summary, detail?.$case === "gap" && detail.value.lost])).toEqual([
    [gap.summary, undefined],
  ]);
  expect(await importInto(log, foreign)).toBe(0);
});

it("a session that this log has lost something of is the same when its export comes back", async () => {
  const log = fakeLog(well);
  const at = { seconds: 1_800_000_000n, nanos: 0 };
  const session = ulid(1_700_000_000_000);
  const over = new AbortController();
  const options = { log: { writer: log, reader: log.reader }, source: target, signal: over.signal };
  await using journal = await openSourceJournal({
    ...options,
    hello: Hello.create({}),
    onAcknowledged: () => {},
    onPublishFailure: () => {},
  });
  journal.numbers.begin(session);
  const start = sessionStarted({ labels: {}, redact: "on" });
  const lost = { after: "e-1", before: "e-2", ordinals: [{ channel: "v1", first: 1n, last: 1n }], events: 1n };
  const facts = [start, lostFromLog(lost), sessionEnded("process ended")];
  await journal.writer.reached(journal.publish(facts.map((fact) => journal.own(session, fact, at))));
  const events = ofSession(log, session);
  expect(await importInto(log, { session, source: target, events })).toBe(0);
});

it("a crash between any two messages of an import is made good by the next one", async () => {
  const foreign = foreignSession();
  foreign.add(...frameOf("v1", "1 one", "build.started", "build.succeeded"), ...frameOf("logs", "hi", "log.written"));
  const whole = fakeLog(well);
  await importInto(whole, foreign);
  const seqs = [...new Set(whole.stored.map(({ seq }) => seq))];
  const own = (log: FakeLog, noun: string) =>
    eventsIn(log).flatMap(({ kind }) => (kind.startsWith(noun) ? [kind] : []));
  expect(seqs.length).toBeGreaterThan(4);
  for (const kept of seqs.keys()) {
    const log = fakeLog(well);
    await importInto(log, foreign);
    const all = [...new Set(log.stored.map(({ seq }) => seq))];
    const left = log.stored.filter(({ seq }) => all.indexOf(seq) < kept);
    (log.stored as unknown[]).splice(0, log.stored.length, ...left);
    await importInto(log, foreign);
    expect(own(log, "session."), `after ${kept} messages`).toEqual(own(whole, "session."));
    expect(own(log, "upstream.").at(-1)).toBe("upstream.lost");
    expect(
      eventsIn(log)
        .filter(({ channel }) => channel !== "tapedeck")
        .map(reported),
    ).toEqual(
      eventsIn(whole)
        .filter(({ channel }) => channel !== "tapedeck")
        .map(reported),
    );
  }
});

it("labels can be added", async () => {
  const log = fakeLog(well);
  const foreign = whole();
  await importInto(log, foreign, { labels: { branch: "other", from: "carol" } });
  expect(ofSession(log, idOf(foreign.session))[0]?.detail).toMatchObject({
    value: { labels: { branch: "other", from: "carol" }, upstream_version: "v2" },
  });
  expect(await importInto(log, foreign)).toBe(0);
});

describe("exactly once", () => {
  const foreign = whole();
  const expected = anywhere(foreign.events);

  it("the same session again is nothing new", async () => {
    const log = fakeLog(well);
    await importInto(log, foreign);
    const before = log.stored.length;
    expect(await importInto(log, foreign)).toBe(0);
    expect(log.stored).toHaveLength(before);
  });

  it("wherever whoever pushes it is killed, twice", async () => {
    for (let first = 0; first <= foreign.events.length; first++) {
      for (const second of [0, first, foreign.events.length]) {
        const log = fakeLog(well);
        await importInto(log, foreign, { cutAfter: first });
        await importInto(log, foreign, { cutAfter: second });
        await importInto(log, foreign);
        expect(anywhere(ofSession(log, idOf(foreign.session))), `${first}, ${second}`).toEqual(expected);
        const own = eventsIn(log).filter(({ channel }) => channel === "tapedeck");
        expect(own.map(({ ordinal }) => Number(ordinal))).toEqual(own.map((_, index) => index + 1));
        // The end of each connection is recorded.
        const links = own.filter(({ session }) => session === "").map(({ kind }) => kind);
        expect(links.filter((kind) => kind === "upstream.connected")).toHaveLength((links.length - 1) / 2);
        expect(await importInto(log, foreign)).toBe(0);
      }
    }
  });

  it("though publishes are lost, or only their answers", async () => {
    for (let seed = 1; seed <= 10; seed++) {
      let state = seed;
      const random = (below: number) => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return Math.floor((state / 2 ** 31) * below);
      };
      const fates: readonly Fate[] = [
        well(),
        { lands: "now", answers: false },
        { lands: "never", answers: false },
        well(),
      ];
      const log = fakeLog(() => fates[random(fates.length)] as Fate);
      for (let cut = random(10); cut > 3; cut = random(10)) {
        await importInto(log, foreign, { cutAfter: random(foreign.events.length) });
      }
      await importInto(log, foreign);
      expect(anywhere(ofSession(log, idOf(foreign.session))), `seed ${seed}`).toEqual(expected);
    }
  });

  it("a later export, which has more, is refused as another session where it is not the same", async () => {
    const log = fakeLog(well);
    await importInto(log, foreign);
    const other = foreignSession({ session: foreign.session });
    other.add(...frameOf("v1", "1 another", "build.started"));
    await expect(importInto(log, other)).rejects.toThrow(
      "event 3 is a different one there, build.started: `tapedeck erase",
    );
  });

  describe("a session that went on when it was exported", () => {
    const upTo = (count: number): Foreign => ({ ...foreign, events: foreign.events.slice(0, count) });
    const kinds = (log: FakeLog) => ofSession(log, idOf(foreign.session)).map(({ kind }) => kind);

    it("goes on with a later export, and once more, and with the earlier one nothing happens", async () => {
      const log = fakeLog(well);
      await importInto(log, upTo(5));
      await importInto(log, upTo(8));
      expect(await importInto(log, upTo(8))).toBe(0);
      await importInto(log, foreign);
      const [a, b, c] = [foreign.events.slice(0, 5), foreign.events.slice(5, 8), foreign.events.slice(8)];
      const again = ["session.ended", "upstream.restored"];
      const missing = [a, b, c].map((events) => events.map(({ kind }) => kind));
      expect(kinds(log)).toEqual([
        ...(missing[0] ?? []),
        ...again,
        ...(missing[1] ?? []),
        ...again,
        ...(missing[2] ?? []),
      ]);
      const reported = anywhere(ofSession(log, idOf(foreign.session)));
      expect(expected.filter((event) => !reported.includes(event))).toEqual([]);
      for (const count of [5, 8, foreign.events.length]) expect(await importInto(log, upTo(count))).toBe(0);
      const own = eventsIn(log).filter(({ channel }) => channel === "tapedeck");
      expect(own.map(({ ordinal }) => Number(ordinal))).toEqual(own.map((_, index) => index + 1));
    });

    it("wherever whoever pushes the later one is killed", async () => {
      for (let cutAfter = 0; cutAfter <= foreign.events.length; cutAfter++) {
        const log = fakeLog(well);
        await importInto(log, upTo(5));
        await importInto(log, foreign, { cutAfter });
        await importInto(log, foreign);
        const reported = anywhere(ofSession(log, idOf(foreign.session)));
        expect(
          reported.filter((event) => expected.includes(event)),
          `${cutAfter}`,
        ).toEqual(expected);
        expect(reported).toHaveLength(expected.length + 2);
      }
    });

    it("also where both exports are of an import", async () => {
      const log = fakeLog(well);
      await importInto(log, upTo(5));
      await importInto(log, foreign);
      const twice = exported(log, foreign);
      expect(twice.events).toHaveLength(foreign.events.length + 2);
      expect(await importInto(log, twice)).toBe(0);
      const other = sourceName({ workspace: "other", developer: "eve", project: "x", upstream: "skaffold" });
      await importInto(log, twice, { source: other });
      expect(anywhere(ofSession(log, idIn("other", foreign.session), other))).toEqual(anywhere(twice.events));
      for (const again of [upTo(5), foreign, twice]) expect(await importInto(log, again, { source: other })).toBe(0);
    });

    it("text that has expired is not taken for what came later", async () => {
      const log = fakeLog(well);
      await importInto(log, upTo(5), { textTtl: 86_400 });
      const kept = log.stored.filter(({ written }) => written.ttlSeconds === undefined);
      (log.stored as unknown[]).splice(0, log.stored.length, ...kept);
      expect(await importInto(log, upTo(5), { textTtl: 86_400 })).toBe(0);
      await importInto(log, foreign, { textTtl: 86_400 });
      const texts = ofSession(log, idOf(foreign.session)).filter(({ channel }) => channel === "logs");
      expect(texts.map(({ ordinal }) => Number(ordinal))).toEqual([2]);
    });
  });
});

describe("is refused, and nothing is written", () => {
  const refused = async (log: FakeLog, foreign: ForeignSession, message: string, options: Options = {}) => {
    const before = log.stored.length;
    await expect(importInto(log, foreign, options)).rejects.toThrow(message);
    expect(log.stored).toHaveLength(before);
  };

  it("where the source has a later session", async () => {
    const log = fakeLog(well);
    await importInto(log, whole({ session: ulid(1_700_000_000_001) }));
    await refused(log, whole(), "import this one as another project, such as --project shop-import");
    await importInto(log, whole({ session: ulid(1_700_000_000_002) }));
  });

  it("where another source of the workspace has it", async () => {
    const log = fakeLog(well);
    const foreign = whole();
    await importInto(log, foreign);
    const other = (workspace: string) =>
      sourceName({ workspace, developer: "eve", project: "x", upstream: "skaffold" });
    await refused(log, foreign, "in this Tapedeck already, as acme/bob/shop/skaffold", { source: other("acme") });
  });

  it("by an origin that its first event does not name", async () => {
    await expect(importInto(fakeLog(well), { ...whole(), origin: ulid(1_600_000_000_000) })).rejects.toThrow(
      "it was recorded first as session",
    );
  });

  it.each([
    ["an event that can't be next", (events: Event[]) => events.splice(2, 1), "event 3: v1 1 is missing before it"],
    ["another's", (events: Event[]) => events.splice(0, 1), "event 1: the session's beginning"],
  ])("with %s", async (_, change, message) => {
    const foreign = whole();
    change(foreign.events);
    await expect(importInto(fakeLog(well), foreign)).rejects.toThrow(message);
  });

  it("by an id of the future", async () => {
    await refused(fakeLog(well), whole({ session: ulid(Date.now() + 10 * 86_400_000) }), "begins in the future");
  });
});

describe("across workspaces", () => {
  const other = sourceName({ workspace: "globex", developer: "eve", project: "x", upstream: "skaffold" });

  it("the same session can be in each, and none of them learns of the others", async () => {
    const foreign = whole();
    const log = fakeLog(well);
    const alone = fakeLog(well);
    await importInto(log, foreign);
    const added = await importInto(alone, foreign, { source: other });
    expect(await importInto(log, foreign, { source: other })).toBe(added);
    const reported = (from: FakeLog) =>
      eventsIn(from, other).map(({ channel, session, kind }) => `${session} ${channel} ${kind}`);
    expect(reported(log)).toEqual(reported(alone));
    const ids = [target, other].map((source) => new Set(eventsIn(log, source).map(({ session }) => session)));
    expect([...(ids[0] ?? [])].filter((id) => id !== "" && ids[1]?.has(id))).toEqual([]);
  });

  it("nor by a file that says it is of one's own workspace", async () => {
    const log = fakeLog(well);
    const foreign = whole();
    await importInto(log, foreign);
    const crafted = { session: idOf(foreign.session), source: other };
    const copy = foreignSession(crafted);
    copy.add(...frameOf("v1", "1 one", "build.started"), ended);
    await importInto(log, copy, { source: other });
    expect(ofSession(log, crafted.session, other)).toEqual([]);
    expect(ofSession(log, idIn("globex", crafted.session), other)).toHaveLength(4);
  });

  it("it keeps the id that it has in its workspace, wherever it was in between", async () => {
    const log = fakeLog(well);
    const foreign = whole();
    await importInto(log, foreign, { source: other });
    const there = exported(log, foreign, other);
    await importInto(log, there);
    expect(ofSession(log, idOf(foreign.session))).toHaveLength(foreign.events.length);
    const back = exported(log, foreign);
    expect(back.events[0]?.detail).toMatchObject({ value: { origin_session: foreign.session } });
    expect(await importInto(log, back, { source: other })).toBe(0);
    expect(await importInto(log, foreign)).toBe(0);
  });
});

it("an erased session can be imported again", async () => {
  const log = fakeLog(well);
  const foreign = whole();
  await importInto(log, foreign);
  const signal = new AbortController().signal;
  const logs = { writer: log, reader: log.reader };
  {
    const deps = {
      log: logs,
      source: target,
      signal,
      hello: Hello.create({}),
      onAcknowledged() {},
      onPublishFailure() {},
    };
    await using journal = await openSourceJournal(deps);
    const erased = { kind: "session.erased" as const, subject: idOf(foreign.session), summary: "" };
    await journal.writer.reached(journal.publish([journal.own(idOf(foreign.session), erased, timestampOfMs(0))]));
  }
  const mark = log.stored.length;
  expect(await importInto(log, foreign)).toBe(foreign.events.length + 2);
  expect(anywhere(ofSession(log, idOf(foreign.session)).slice(-foreign.events.length))).toEqual(
    anywhere(foreign.events),
  );
  expect(log.stored.length).toBe(mark + foreign.events.length + 2);
});

describe("text that goes in time", () => {
  const day = 86_400;

  it("goes here too, but not with what else its frame says", async () => {
    const log = fakeLog(well);
    await importInto(log, whole(), { textTtl: day });
    const going = log.stored.flatMap(({ written }) =>
      written.ttlSeconds === undefined ? [] : [`${reported(Event.decode(written.event))} ${written.ttlSeconds}`],
    );
    expect(going).toEqual([`logs 1 log.written ${day}`, `logs 2 log.written ${day}`]);
  });

  it("is not missed when it is gone", async () => {
    const log = fakeLog(well);
    const foreign = whole();
    await importInto(log, foreign, { textTtl: day });
    const kept = log.stored.filter(({ written }) => written.ttlSeconds === undefined);
    (log.stored as unknown[]).splice(0, log.stored.length, ...kept);
    const before = kept.length;
    // The recorder checks whether the source's last message may go.
    expect(await importInto(log, foreign, { textTtl: day })).toBe(0);
    expect(log.stored).toHaveLength(before);
  });

  it("may be missing", async () => {
    const log = fakeLog(well);
    const foreign = whole();
    const isText = ({ channel, ordinal }: Event) => channel === "logs" && ordinal === 1n;
    const some = { ...foreign, events: foreign.events.filter((event) => !isText(event)) };
    await expect(importInto(fakeLog(well), some)).rejects.toThrow("logs 1 is missing before it");
    await importInto(log, some, { missing: { logs: 1n } });
    expect(anywhere(ofSession(log, idOf(foreign.session)))).toEqual(anywhere(some.events));
  });
});

describe("the source goes on", () => {
  const open = (log: FakeLog, first_index: bigint) =>
    openSessionRecorder({
      log: { writer: log, reader: log.reader },
      source: target,
      normalizer,
      signal: new AbortController().signal,
      hello: Hello.fromPartial({ developer: "Bob", project: "Shop", upstream: "skaffold", tap: "T", first_index }),
    });
  const item = (index: bigint, connection: string, ms: number, what: Item["what"]): Item => ({
    index,
    connection,
    at: timestampOfMs(ms),
    what,
  });
  const dialled: Item["what"] = { $case: "dialled", value: { address: "here:1", channels: ["v1"] } };
  const frame = (text: string): Item["what"] => ({
    $case: "frame",
    value: { channel: "v1", bytes: Buffer.from(text), more: false },
  });

  /** A tap whose recorder is killed; then so much of the session is imported, and the tap comes back to its own. */
  async function between(foreign: ForeignSession, options: Options) {
    const log = fakeLog(well);
    const tap = async (first: bigint, ...items: readonly Item[]) => {
      await using recording = await open(log, first);
      for (const one of items) await recording.take(one);
      await recording.advance(timestampOfMs(100_000));
      await recording.drained();
    };
    await tap(1n, item(1n, "C1", 0, dialled), item(2n, "C1", 1, frame("5 first")));
    const [mine = ""] = new Set(eventsIn(log).flatMap(({ session }) => (session === "" ? [] : [session])));
    await importInto(log, foreign, options);
    await tap(3n, item(3n, "C1", 61_000, frame("6 second")));
    const frames = ofSession(log, mine).filter(({ channel }) => channel === "v1");
    expect(frames.map(({ ordinal, original }) => `${ordinal} ${original?.bytes}`)).toEqual(["1 5 first", "2 6 second"]);
    return log;
  }

  /** Later than what was recorded before. */
  const later = () => whole({ session: ulid(Date.now() + 600_000) });

  it("with the tap that was there before", async () => {
    const foreign = later();
    const log = await between(foreign, {});
    expect(anywhere(ofSession(log, idOf(foreign.session)))).toEqual(anywhere(foreign.events));
    expect(await importInto(log, foreign)).toBe(0);
  });

  it("and then with the import that was cut short at an end of its session", async () => {
    const foreign = later();
    // The last frame is not known to be whole yet.
    const cutAfter = foreign.events.length + 1;
    foreign.add({ kind: "upstream.restored" }, ...frameOf("v1", "7 again", "build.started"), ended);
    const log = await between(foreign, { cutAfter });
    await importInto(log, foreign);
    expect(anywhere(ofSession(log, idOf(foreign.session)))).toEqual(anywhere(foreign.events));
    for (const { id, channel, session } of eventsIn(log)) {
      if (channel !== "tapedeck") expect(id.startsWith(`${session}.${channel}.`)).toBe(true);
    }
    const own = eventsIn(log).filter(({ channel }) => channel === "tapedeck");
    expect(own.map(({ ordinal }) => Number(ordinal))).toEqual(own.map((_, index) => index + 1));
    expect(log.stored.at(-1)?.written.cursor).toMatchObject({
      session: idOf(foreign.session),
      ordinals: { v1: 4, logs: 2 },
    });
  });

  it("not with an import that was cut short in the middle, as its session was ended here", async () => {
    const foreign = later();
    const log = await between(foreign, { cutAfter: 6 });
    await expect(importInto(log, foreign)).rejects.toThrow("event 6 is a different one there, session.ended");
  });
});
