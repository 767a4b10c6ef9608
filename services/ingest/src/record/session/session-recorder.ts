import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import type {
  ChannelEnded,
  Closed,
  Described,
  Dropped,
  Hello,
  Identified,
  Item,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Published } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import type { Moment } from "@tapedeck/shared/time/moment";
import { compareMoments, momentNow, msBetween } from "@tapedeck/shared/time/moment";
import type { Fact } from "../../normalize/fact.ts";
import { channelNames, type Normalizer } from "../../normalize/normalizer.ts";
import { type Numbered, ownChannel } from "../frames/numbering.ts";
import { bufferOf, largestFrameBytes, shaOf } from "../frames/original.ts";
import { commits } from "../journal/ack-watermark.ts";
import type { KnownConnection } from "../journal/source-history.ts";
import { type BookOptions, openBook } from "../journal/source-journal.ts";
import { gapFilled, lostBetween, sessionGap } from "../own-facts/gap-facts.ts";
import { sessionDescribed } from "../own-facts/session-facts.ts";
import { channelLost, upstreamConnected, upstreamHeardAgain, upstreamLost } from "../own-facts/upstream-facts.ts";
import { type ChannelRecordingOptions, channelRecording } from "./channel-recorder.ts";
import * as connections from "./connection.ts";
import { type Injections, injections } from "./injections.ts";
import { openLooks } from "./observation-recorder.ts";
import { openSessions } from "./sessions.ts";

type Connection = connections.Connection;
type Channel = connections.ConnectionChannel;

/** gRPC status of a method that the upstream does not have. */
const unimplemented = 12;
/** How long a connection may say nothing that tells its session before it is taken for a new one's. */
const undecidedMs = 2_000;
/** The same in frames, for a tap whose clock stands still. */
const undecidedFrames = 2_000;

export type RecordingOptions = {
  readonly log: BookOptions["log"];
  readonly source: SourceName;
  readonly reading: Normalizer;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  readonly watch?: RecordingWatch;
  /** Seconds that text lives in the log; absent: for ever. */
  readonly textTtl?: number | undefined;
  /** Larger frames are recorded without their bytes. Default 7 MiB. */
  readonly frameBytes?: number;
};

/** Told what goes on, for metrics and the service's log. */
export type RecordingWatch = {
  readonly frame?: ChannelRecordingOptions["onFrame"];
  readonly published?: (messages: number) => void;
  readonly trouble?: (published: Exclude<Published, { outcome: "acknowledged" }>) => void;
  readonly unknownChannel?: (channel: string) => void;
  /** Told of each connection's session when that is known. */
  readonly session?: (session: string) => void;
  /** The upstream's answer about its state, recorded or not, once all that came before it is in the log. */
  readonly observed?: (observed: Observed) => void;
};

/**
 * Records what one tap pushes of one source: finds its session, drops what the log has, numbers and publishes the rest.
 * Everything that it knows at the start comes from the log, so a new one goes on where one before it was killed.
 */
export type Recording = AsyncDisposable & {
  /** Takes the next item; one call after the other. Rejects when the log is written by somebody else. */
  take(item: Item): Promise<void>;
  /** No item has come until this moment (of the tap's clock). Not during a take. */
  advance(at: Moment): Promise<void>;
  /** True while it matters that time passes. */
  readonly waiting: boolean;
  /** Everything up to this index is in the log. */
  committed(): bigint;
  /** Called whenever `committed` may have grown. */
  onCommitted: () => void;
  /** Records something that Tapedeck says, of the session that is recorded unless another is named; resolves when it is in the log. */
  say(fact: Fact, session?: string): Promise<void>;
  /** Takes over what the upstream answered where that differs from what its events tell; see observed.proto. */
  adopt(observed: Observed): void;
  /** Resolves when everything that was taken so far and has come out of the hold-back is in the log. */
  drained(): Promise<void>;
  readonly injections: Injections;
  /** The upstream's connection is there, as far as the tap has told. */
  readonly connected: boolean;
  /** Told of each event that is recorded, when it is on its way to the log. */
  readonly listeners: Set<(event: Event) => void>;
  /** Resolves with what ended the writing. */
  readonly ended: Promise<Error>;
};

/** Rejects only when the signal aborts; waits while the log is away. */
export async function openRecording(options: RecordingOptions): Promise<Recording> {
  const { log, source, reading, hello, watch = {}, textTtl, frameBytes = largestFrameBytes } = options;
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  const book = await openBook({
    ...{ log, source, hello, signal, allSessions: reading.observing !== undefined },
    life: textTtl === undefined ? undefined : { textTtl, channels: channelNames(reading) },
    onAcknowledged(messages) {
      watch.published?.(messages);
      recording.onCommitted();
    },
    onTrouble: (published) => watch.trouble?.(published),
  });
  const { history, numbers, writer } = book;
  const items = commits(hello.first_index === 0n ? 0n : hello.first_index - 1n);
  const injected = injections(reading, history.calls);
  const onFrame = watch.frame ?? (() => {});
  const common = { book, source, signal, frameBytes, textTtl, onFrame, reader: log.reader };
  const recordFrames = channelRecording({ ...common, reading, injections: injected });
  const sessions = openSessions({ ...{ book, source, reading, hello, signal }, reader: log.reader });
  const { observing: looking } = reading;
  const { settings } = hello;
  const looks = looking && openLooks({ ...common, items, looking, settings, anotherSession: sessions.replace });
  let lastIndex = 0n;
  let current: Connection | undefined;
  /** Ordinal of the last control call, and what was adopted where. */
  let lastCall = 0n;
  const adoptedAt = new Map<string, { readonly place: string; readonly state: Uint8Array }>();
  book.listeners.add(({ kind, ordinal }) => {
    if (kind.startsWith("control.")) lastCall = ordinal;
  });
  let toldSession = "";

  async function take(item: Item): Promise<void> {
    const at = item.at ?? history.lastAt ?? momentNow();
    if (item.index < lastIndex) {
      throw new TapedeckError("invalid_argument", `item ${item.index} came after ${lastIndex}`, { field: "index" });
    }
    if (item.connection === "" && item.what?.$case !== "dropped") {
      throw new TapedeckError("invalid_argument", `item ${item.index} has no connection`, { field: "connection" });
    }
    lastIndex = item.index;
    items.began(item.index);
    await advance(at);
    await handle(item, at);
    tellSession();
    recording.onCommitted();
    await writer.room();
  }

  function tellSession(): void {
    const session = current?.session ?? "";
    if (session === "" || session === toldSession) return;
    toldSession = session;
    watch.session?.(session);
  }

  async function handle({ index, connection: id, what }: Item, at: Moment): Promise<void> {
    const done = (messages = 0) => items.finished(index, messages);
    // "The same" would be said of a look that never came.
    if (what?.$case === "dropped") looks?.connected();
    if (what === undefined || isMemoryLost(what) || history.isOver(id)) return done();
    const isLast = history.connection?.id === id;
    if (isLast && history.connection?.lost) {
      return done(what.$case === "closed" ? book.publish(sessions.end(id, what.value, at)) : 0);
    }
    if (id !== "" && current?.id !== id) {
      // All that is told of it is its end, and somebody has recorded a later one, or nobody any.
      if (what.$case === "closed" && !isLast) return done();
      if (isLast && history.connection !== undefined) current = goOn(history.connection);
      else await connect(id, what.$case === "dialled" ? what.value.address : "", at);
    }
    const connection = current;
    if (connection === undefined) return done(what.$case === "dropped" ? gap(what.value, at) : 0);
    switch (what.$case) {
      case "dialled":
        return done(writer.appended);
      case "identified":
        return done(await identify(connection, what.value, at));
      case "frame":
        if (looks?.has(what.value.channel))
          return await looks.take(connection, what.value, at, index, sessions.redact());
        return await frame(connection, what.value, at, index);
      case "channel_ended":
        await release(connection, what.value.channel, at);
        return connections.whenDecided(connection, () => done(channelEnded(connection, what.value, at)));
      case "channel_filled":
        await release(connection, what.value.channel, at);
        return connections.whenDecided(connection, () => done(filled(connection, what.value.channel, at)));
      case "described":
        return connections.whenDecided(connection, () => {
          done(described(connection, what.value, at));
          observe(connection, what.value, at);
        });
      case "dropped":
        return connections.whenDecided(connection, () => done(gap(what.value, at)));
      case "closed":
        return done(await close(connection, what.value, at));
    }
  }

  async function connect(id: string, dialled: string, at: Moment): Promise<void> {
    const before = history.connection;
    const interrupted = history.interrupted(id);
    const address = interrupted?.address ?? dialled;
    const reason = "the tap began another connection";
    if (current !== undefined) await close(current, { reason, process_ended: false }, at, true);
    else if (before !== undefined && !before.lost && before.unheardSince === undefined) {
      const lost = upstreamLost({ connection: before.id, address: before.address }, reason, true);
      book.publish([book.own(before.session, lost, at)]);
    }
    numbers.unsettle();
    const introduction = book.introduction(at);
    book.publish([...introduction, book.own("", upstreamConnected({ connection: id, address }, hello.tap), at)]);
    current = connections.connectionOf(id, address, "", undefined);
    // Only the rest of what it says comes now, which tells no session by itself.
    const session = history.sessions.find((one) => one.id === interrupted?.session);
    if (session !== undefined) await sessions.rejoin(current, session, at);
  }

  /** A connection that the recorder before this one knew. */
  function goOn({ id, address, session, rejoined, seq }: KnownConnection): Connection {
    return { ...connections.connectionOf(id, address, session, session === "" ? undefined : seq), rejoined };
  }

  /** The upstream itself says which session this is. */
  async function identify(connection: Connection, { identity, version }: Identified, at: Moment): Promise<number> {
    if (connection.session !== "") return 0;
    const sha = shaOf(Buffer.from(identity));
    const known = history.sessions.find(({ fingerprints }) => fingerprints.get("identity") === sha);
    if (known === undefined) sessions.begin(connection, at, { at, sha, version });
    else await sessions.rejoin(connection, known, at);
    looks?.connected();
    connections.runPending(connection);
    return writer.appended;
  }

  async function frame(
    connection: Connection,
    { channel: name, bytes, more }: connections.FramePiece,
    at: Moment,
    index: bigint,
  ) {
    const channel = channelOf(connection, name);
    if (channel === undefined) {
      watch.unknownChannel?.(name);
      return items.finished(index, 0);
    }
    const whole = connections.assemble(channel, index, bytes, more);
    if (whole === undefined) return;
    const { momentOf } = channel.reading;
    const { maskInThread: apart } = reading;
    const held = connections.heldFrame(whole, at, {
      mask: (raw) => reading.mask(name, raw),
      maskApart: apart && ((raw) => apart.mask(name, raw)),
      momentOf,
    });
    connection.firstFrameAt ??= at;
    await deliver(connection, channel, channel.holdBack.take(held, at));
    await decide(connection, at, false);
  }

  /** Its end never came. */
  function giveUpPartial(channel: Pick<Channel, "partial">): void {
    for (const index of channel.partial?.indexes ?? []) items.finished(index, 0);
    channel.partial = undefined;
  }

  function channelOf(connection: Connection, name: string): Channel | undefined {
    const known = connection.channels.get(name);
    if (known !== undefined) return known;
    const channelReading = reading.channels.find((one) => one.name === name);
    if (channelReading === undefined) return undefined;
    const isLive = connection.resumedSeq !== undefined && numbers.isSettled(name);
    const channel = connections.connectionChannel(channelReading, isLive);
    connection.channels.set(name, channel);
    return channel;
  }

  async function advance(at: Moment): Promise<void> {
    const connection = current;
    if (connection === undefined) return;
    for (const channel of connection.channels.values())
      await deliver(connection, channel, channel.holdBack.advance(at));
    await decide(connection, at, false);
    tellSession();
  }

  async function release(connection: Connection, name: string, at: Moment): Promise<void> {
    const channel = connection.channels.get(name);
    if (channel !== undefined) await deliver(connection, channel, channel.holdBack.release());
    await decide(connection, at, false);
  }

  async function deliver(
    connection: Connection,
    channel: Channel,
    frames: readonly connections.HeldFrame[],
  ): Promise<void> {
    if (frames.length === 0) return;
    channel.ready = true;
    if (connection.session === "") channel.waiting = channel.waiting.concat(frames);
    else await record(connection, channel, frames);
  }

  /** All items of a piece are committed together, so that after a crash the whole piece is pushed and sorted again. */
  async function record(
    connection: Connection,
    channel: Channel,
    frames: readonly connections.HeldFrame[],
  ): Promise<void> {
    const messages = await recordFrames(connection, channel, frames, sessions.redact());
    for (const index of frames.flatMap(({ indexes }) => indexes)) items.finished(index, messages);
  }

  /** Finds the connection's session when the channels that spoke have said enough, and records what waited for that. */
  async function decide(connection: Connection, at: Moment, final: boolean): Promise<void> {
    const { firstFrameAt, channels } = connection;
    if (connection.session !== "" || firstFrameAt === undefined) return;
    const isHeld = ({ ready, holdBack }: Channel) => !ready && holdBack.state === "holding";
    if (!final && [...channels.values()].some(isHeld)) return;
    const frames = [...channels.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
    const isLast = final || frames >= undecidedFrames || msBetween(firstFrameAt, at) >= undecidedMs;
    if (frames === connection.undecidedFrames && !isLast) return;
    connection.undecidedFrames = frames;
    const verdict = await sessions.find(connection, isLast);
    if (verdict === "wait") return;
    // Where messages come with times of their own, not as they are said, the first one's is when it began.
    if (verdict === "new") sessions.begin(connection, connections.isFromFile(connection) ? firstFrameAt : at);
    else await sessions.rejoin(connection, verdict, at);
    for (const { name } of reading.channels) {
      const channel = channels.get(name);
      if (channel === undefined || channel.waiting.length === 0) continue;
      const { waiting } = channel;
      channel.waiting = [];
      await record(connection, channel, waiting);
    }
    connections.runPending(connection);
  }

  function channelEnded({ id, address, session }: Connection, ended: ChannelEnded, at: Moment): number {
    const { channel, code, message, final } = ended;
    if (history.connection?.lostChannels.has(channel)) return 0;
    const reason = final ? `${message} (final for this process)` : message;
    const lost = book.own(session, channelLost({ connection: id, address }, { channel, code, reason }), at);
    // A channel that the upstream does not have lacks nothing.
    if (!final || code === unimplemented || session === "") return book.publish([lost]);
    const open = reading.channels.some(({ name, replays }) => name === channel && replays);
    return book.publish([lost, book.own(session, sessionGap(channel, `its stream broke: ${message}`, { open }), at)]);
  }

  /** What an open gap missed has come. */
  function filled({ session }: Connection, channel: string, at: Moment): number {
    if (session === "" || !history.session?.openGaps.has(channel)) return 0;
    // What a channel that repeats only a part has said is in no file.
    const isUnknown = reading.channels.some(({ name, replays }) => !replays && numbers.ordinal(name) > 0);
    if (channel === "" && isUnknown) return 0;
    return book.publish([book.own(session, gapFilled(channel), at)]);
  }

  function described({ session, resumedSeq }: Connection, { channel, state }: Described, at: Moment): number {
    // No upstream's that we know: more than the log takes, or by a name that can be no key of a map (`__proto__`).
    if (session === "" || state.byteLength > frameBytes || !/^[a-z]\w*$/.test(channel)) return 0;
    const before = history.session?.described.get(channel);
    // Pushed again by the tap: it was looked at before.
    if (resumedSeq !== undefined && before?.at !== undefined && compareMoments(at, before.at) <= 0) return 0;
    // Of a channel that tells no more, the upstream's own answer is all that is known of the state.
    const adopted = history.session?.openGaps.has(channel) ?? false;
    const isNews = before === undefined || (adopted && !before.adopted);
    if (!isNews && !reading.stateDiffers(channel, before.state, state, adopted)) return 0;
    return book.publish([book.own(session, sessionDescribed(channel, state, adopted), at)]);
  }

  /** The state that the upstream answered becomes the recorded one, if nothing has come since that could have changed it. */
  function adopt({ session, channel, state, ordinals: { [ownChannel]: own_, ...ordinals } }: Observed): void {
    const connection = current;
    if (connection === undefined || connection.session !== session || lastCall > (own_ ?? 0n)) return;
    if ([...connection.channels.values()].some(({ holdBack }) => holdBack.state === "holding")) return;
    if (Object.entries(ordinals).some(([name, ordinal]) => BigInt(numbers.ordinal(name)) !== ordinal)) return;
    const place = JSON.stringify(Object.entries(ordinals).map(([name, ordinal]) => [name, String(ordinal)]));
    const before = adoptedAt.get(channel);
    if (before?.place === place && !reading.stateDiffers(channel, before.state, state, true)) return;
    adoptedAt.set(channel, { place, state });
    book.publish([book.own(session, sessionDescribed(channel, state, true), momentNow())]);
  }

  function observe({ session, channels }: Connection, { channel, state }: Described, at: Moment): void {
    // What is held back came before the answer and has no ordinal yet.
    const isHeld = [...channels.values()].some(({ holdBack }) => holdBack.state === "holding");
    if (watch.observed === undefined || session === "" || isHeld) return;
    const names = [...channelNames(reading), ownChannel];
    const ordinals = Object.fromEntries(names.map((name) => [name, BigInt(numbers.ordinal(name))]));
    const observed = { source, session, channel, state: bufferOf(state), ordinals, observed_at: at };
    writer.reached(writer.appended).then(
      () => watch.observed?.(observed),
      () => {}, // writing has ended, which is told elsewhere
    );
  }

  function gap({ channel, count, bytes, reason }: Dropped, at: Moment): number {
    if (history.hasGap(channel, at)) return 0;
    const session = current?.session || (history.session?.open ? history.session.id : "");
    const introduction = book.introduction(at);
    return book.publish([
      ...introduction,
      book.own(session, sessionGap(channel, reason, { dropped: { frames: count, bytes } }), at),
    ]);
  }

  async function close(connection: Connection, closed: Closed, at: Moment, inferred = false): Promise<number> {
    for (const pieces of connection.looked.values()) giveUpPartial(pieces);
    for (const channel of connection.channels.values()) {
      giveUpPartial(channel);
      await deliver(connection, channel, channel.holdBack.release());
    }
    await decide(connection, at, true);
    connections.runPending(connection);
    const { id, address, session } = connection;
    const silent = silences(connection, at);
    const lost = book.own(session, upstreamLost({ connection: id, address }, closed.reason, inferred), at);
    current = undefined;
    return book.publish([...silent, lost, ...sessions.end(id, closed, at)]);
  }

  /** What had spoken before and repeated nothing has been emptied in between, and nobody heard the rest of it. */
  function silences({ session, rejoined, resumedSeq, channels }: Connection, at: Moment): Numbered[] {
    if (!rejoined || resumedSeq !== undefined) return [];
    return reading.channels
      .filter(({ name, replays }) => !replays && !channels.has(name) && numbers.ordinal(name) > 0)
      .map(({ name }) => book.own(session, lostBetween(name), at));
  }

  /** The tap of the last connection is back: it goes on, and what it could not tell comes now. */
  function hearAgain(): void {
    const { connection } = history;
    if (connection?.unheardSince === undefined || connection.tap !== hello.tap) return;
    const { id, address, session } = connection;
    const at = momentNow();
    book.publish([book.own(session, upstreamHeardAgain({ connection: id, address }), at)]);
    if (history.session?.id !== session || !history.session.openGaps.has("")) return;
    book.publish([book.own(session, gapFilled(""), at)]);
  }

  const recording: Recording = {
    take,
    advance,
    get waiting() {
      if (current === undefined) return false;
      if (current.session === "" && current.firstFrameAt !== undefined) return true;
      return [...current.channels.values()].some(({ holdBack }) => holdBack.state === "holding");
    },
    committed: () => items.upTo(writer.acknowledged),
    onCommitted: () => {},
    say(fact, session = current?.session ?? "") {
      const at = momentNow();
      const introduction = book.introduction(at);
      return writer.reached(book.publish([...introduction, book.own(session, fact, at)]));
    },
    adopt,
    drained: () => writer.reached(writer.appended),
    injections: injected,
    get connected() {
      const { connection } = history;
      if (current !== undefined) return true;
      return connection !== undefined && !connection.lost && connection.unheardSince === undefined;
    },
    listeners: book.listeners,
    ended: writer.ended,
    async [Symbol.asyncDispose]() {
      closing.abort();
      await book[Symbol.asyncDispose]();
    },
  };
  hearAgain();
  return recording;
}

/** Where a tap was killed: what it lost from memory is unknown, and comes back with the next connection's repeat. */
function isMemoryLost(what: NonNullable<Item["what"]>): boolean {
  return what.$case === "dropped" && what.value.channel === "" && what.value.count === 0n;
}
