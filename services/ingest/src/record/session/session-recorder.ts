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
import type { PublishOutcome } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps, msBetween, timestampNow } from "@tapedeck/shared/time/timestamp";
import type { Fact } from "../../normalize/fact.ts";
import { channelNames, type Normalizer } from "../../normalize/normalizer.ts";
import { type Numbered, ownChannel } from "../frames/numbering.ts";
import { bufferOf, largestFrameBytes, shaOf } from "../frames/original.ts";
import type { ReplayTimes } from "../frames/replay-sorter.ts";
import { AckWatermark } from "../journal/ack-watermark.ts";
import type { KnownConnection } from "../journal/known-connections.ts";
import { openSourceJournal, type SourceJournalOptions } from "../journal/source-journal.ts";
import { gapFilled, lostBetween, sessionGap } from "../own-facts/gap-facts.ts";
import { sessionDescribed } from "../own-facts/session-facts.ts";
import { channelLost, upstreamConnected, upstreamHeardAgain, upstreamLost } from "../own-facts/upstream-facts.ts";
import { type ChannelRecorderOptions, channelRecorder } from "./channel-recorder.ts";
import * as connections from "./connection.ts";
import { Injections } from "./injections.ts";
import { ObservationRecorder } from "./observation-recorder.ts";
import { openSessions } from "./sessions.ts";

type UpstreamConnection = connections.UpstreamConnection;
type Channel = connections.ConnectionChannel;

/** gRPC status of a method that the upstream does not implement. */
const unimplemented = 12;
/** A connection that sends nothing to identify its session for this long gets a new session. */
const undecidedMs = 2_000;
/** The same limit in frames, for a tap whose clock stands still. */
const undecidedFrames = 2_000;

export type SessionRecorderOptions = {
  readonly log: SourceJournalOptions["log"];
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  readonly listener?: SessionRecorderListener;
  /** Seconds that text lives in the log; absent: forever. */
  readonly textTtl?: number | undefined;
  /** Larger frames are recorded without their bytes. Default 7 MiB. */
  readonly frameBytes?: number;
  /** See RecordingTimes. */
  readonly replay?: ReplayTimes | undefined;
};

/** Receives what the recorder does, for metrics and for the push stream. */
export type SessionRecorderListener = {
  readonly frame?: ChannelRecorderOptions["onFrame"];
  readonly published?: (messages: number) => void;
  readonly trouble?: (published: Exclude<PublishOutcome, { outcome: "acknowledged" }>) => void;
  readonly unknownChannel?: (channel: string) => void;
  /** Called with each connection's session as soon as it is known. */
  readonly session?: (session: string) => void;
  /** Called with the index up to which everything is in the log, whenever it may have grown. */
  readonly committed?: (index: bigint) => void;
  /** Called with the upstream's answer about its state, recorded or not, once everything before it is in the log. */
  readonly observed?: (observed: Observed) => void;
};

/** What the recorder of a push needs of a session recorder, live or imported. */
export type PushedSession = AsyncDisposable & {
  /** Takes the next item. Calls must not overlap. Rejects when another recorder has written to the log. */
  take(item: Item): Promise<void>;
  /** No item has come until this moment of the tap's clock. Not during a take. */
  advance(at: Timestamp): Promise<void>;
  /** True while passing time matters. */
  readonly waiting: boolean;
  /** Everything up to this index is in the log. */
  committed(): bigint;
  /** Resolves when everything that was taken so far and has left the replay sorter is in the log. */
  drained(): Promise<void>;
  /** The upstream is connected, as far as the tap has reported. */
  readonly connected: boolean;
  /** Resolves with what ended the writing. */
  readonly ended: Promise<Error>;
};

/**
 * Records what one tap pushes of one source: finds its session, drops what the log already has, numbers and publishes the
 * rest. Everything that it knows at the start comes from the log, so it continues where a killed recorder stopped.
 */
export type SessionRecorder = PushedSession & {
  readonly kind: "live";
  /**
   * Records a fact that Tapedeck itself states, about the session that is recorded unless another is named. Resolves when
   * it is in the log.
   */
  recordFact(fact: Fact, session?: string): Promise<void>;
  /** Records the upstream's answer as the state where it differs from what the events lead to; see observed.proto. */
  adopt(observed: Observed): void;
  readonly injections: Injections;
  /** Called with each event that is on its way to the log. */
  readonly listeners: Set<(event: Event) => void>;
};

/** Waits while the log is away. Rejects only when the signal aborts. */
export async function openSessionRecorder(options: SessionRecorderOptions): Promise<SessionRecorder> {
  const { log, source, normalizer, hello, listener = {}, textTtl, frameBytes = largestFrameBytes } = options;
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  const journal = await openSourceJournal({
    ...{ log, source, hello, signal, allSessions: normalizer.observing !== undefined },
    life: textTtl === undefined ? undefined : { textTtl, channels: channelNames(normalizer) },
    onAcknowledged(messages) {
      listener.published?.(messages);
      reportCommitted();
    },
    onTrouble: (published) => listener.trouble?.(published),
  });
  const { history, numbers, writer } = journal;
  const watermark = new AckWatermark(hello.first_index === 0n ? 0n : hello.first_index - 1n);
  const injections = new Injections(normalizer, history.calls);
  const onFrame = listener.frame ?? (() => {});
  const common = { journal, source, signal, frameBytes, textTtl, onFrame, reader: log.reader };
  const recordFrames = channelRecorder({ ...common, normalizer, injections });
  const sessions = openSessions({ ...{ journal, source, normalizer, hello, signal }, reader: log.reader });
  const { observing } = normalizer;
  const { settings } = hello;
  const observations =
    observing &&
    new ObservationRecorder({ ...common, watermark, observing, settings, onAnotherSession: sessions.replace });
  let lastIndex = 0n;
  let current: UpstreamConnection | undefined;
  /** Ordinal of the last control call. */
  let lastCall = 0n;
  /** The last adopted state, by channel. */
  const adoptedAt = new Map<string, { readonly ordinalsKey: string; readonly state: Uint8Array }>();
  journal.listeners.add(({ kind, ordinal }) => {
    if (kind.startsWith("control.")) lastCall = ordinal;
  });
  let reportedSession = "";

  const committed = () => watermark.upTo(writer.acknowledged);

  function reportCommitted(): void {
    listener.committed?.(committed());
  }

  async function take(item: Item): Promise<void> {
    const at = item.at ?? history.lastAt ?? timestampNow();
    if (item.index < lastIndex) {
      throw new TapedeckError("invalid_argument", `item ${item.index} came after ${lastIndex}`, { field: "index" });
    }
    if (item.connection === "" && item.what?.$case !== "dropped") {
      throw new TapedeckError("invalid_argument", `item ${item.index} has no connection`, { field: "connection" });
    }
    lastIndex = item.index;
    watermark.began(item.index);
    await advance(at);
    await handle(item, at);
    reportSession();
    reportCommitted();
    await writer.room();
  }

  function reportSession({ session = "" }: Partial<UpstreamConnection> = current ?? {}): void {
    if (session === "" || session === reportedSession) return;
    reportedSession = session;
    listener.session?.(session);
  }

  async function handle({ index, connection: id, what }: Item, at: Timestamp): Promise<void> {
    const done = (messages = 0) => watermark.finished(index, messages);
    // Otherwise "unchanged" would be concluded about an observation that never came.
    if (what?.$case === "dropped") observations?.connected();
    if (what === undefined || isMemoryLost(what) || history.isOver(id)) return done();
    const isLast = history.connection?.id === id;
    if (isLast && history.connection?.lost) {
      return done(what.$case === "closed" ? journal.publish(sessions.end(id, what.value, at)) : 0);
    }
    if (id !== "" && current?.id !== id) {
      // The item reports only the end of this connection, and a later connection, or none, was recorded.
      if (what.$case === "closed" && !isLast) return done();
      if (isLast && history.connection !== undefined) current = resumed(history.connection);
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
        if (observations?.has(what.value.channel))
          return await observations.take(connection, what.value, at, index, sessions.redact());
        return await frame(connection, what.value, at, index);
      case "channel_ended":
        await release(connection, what.value.channel, at);
        return connections.whenDecided(connection, () => done(channelEnded(connection, what.value, at)));
      case "channel_filled":
        await release(connection, what.value.channel, at);
        return connections.whenDecided(connection, () => done(gapIsFilled(connection, what.value.channel, at)));
      case "described":
        return connections.whenDecided(connection, () => {
          done(stateDescribed(connection, what.value, at));
          publishObserved(connection, what.value, at);
        });
      case "dropped":
        return connections.whenDecided(connection, () => done(gap(what.value, at)));
      case "closed":
        return done(await close(connection, what.value, at));
    }
  }

  async function connect(id: string, dialled: string, at: Timestamp): Promise<void> {
    const before = history.connection;
    const interrupted = history.interrupted(id);
    const address = interrupted?.address ?? dialled;
    const reason = "the tap began another connection";
    if (current !== undefined) await close(current, { reason, process_ended: false }, at, true);
    else if (before !== undefined && !before.lost && before.unheardSince === undefined) {
      const lost = upstreamLost({ connection: before.id, address: before.address }, reason, true);
      journal.publish([journal.own(before.session, lost, at)]);
    }
    numbers.unsettle();
    const introduction = journal.introduction(at);
    journal.publish([...introduction, journal.own("", upstreamConnected({ connection: id, address }, hello.tap), at)]);
    current = connections.connectionOf(id, address, "", undefined);
    // Only the rest of its frames comes now, which does not identify a session by itself.
    const session = history.sessions.find((one) => one.id === interrupted?.session);
    if (session !== undefined) await sessions.rejoin(current, session, at);
  }

  /** A connection that the previous recorder knew. */
  function resumed({ id, address, session, rejoined, offset }: KnownConnection): UpstreamConnection {
    return { ...connections.connectionOf(id, address, session, session === "" ? undefined : offset), rejoined };
  }

  /** The upstream identifies the session itself. */
  async function identify(
    connection: UpstreamConnection,
    { identity, version }: Identified,
    at: Timestamp,
  ): Promise<number> {
    if (connection.session !== "") return 0;
    const sha = shaOf(Buffer.from(identity));
    const known = history.sessions.find(({ fingerprints }) => fingerprints.get("identity") === sha);
    if (known === undefined) sessions.begin(connection, at, { at, sha, version });
    else await sessions.rejoin(connection, known, at);
    observations?.connected();
    connections.runPending(connection);
    return writer.appended;
  }

  async function frame(
    connection: UpstreamConnection,
    { channel: name, bytes, more }: connections.FramePiece,
    at: Timestamp,
    index: bigint,
  ) {
    const channel = channelOf(connection, name);
    if (channel === undefined) {
      listener.unknownChannel?.(name);
      return watermark.finished(index, 0);
    }
    const whole = connections.assemble(channel, index, bytes, more);
    if (whole === undefined) return;
    const { timestampOf } = channel.normalizer;
    const { maskInThread: apart } = normalizer;
    const held = connections.heldFrame(whole, at, {
      mask: (raw) => normalizer.mask(name, raw),
      maskApart: apart && ((raw) => apart.mask(name, raw)),
      timestampOf,
    });
    connection.firstFrameAt ??= at;
    await deliver(connection, channel, channel.sorter.take(held, at));
    await decide(connection, at, false);
  }

  /** The rest of the frame never came. */
  function dropPartial(channel: Pick<Channel, "partial">): void {
    for (const index of channel.partial?.indexes ?? []) watermark.finished(index, 0);
    channel.partial = undefined;
  }

  function channelOf(connection: UpstreamConnection, name: string): Channel | undefined {
    const known = connection.channels.get(name);
    if (known !== undefined) return known;
    const channelReading = normalizer.channels.find((one) => one.name === name);
    if (channelReading === undefined) return undefined;
    const isLive = connection.resumedOffset !== undefined && numbers.isSettled(name);
    const channel = connections.connectionChannel(channelReading, isLive, options.replay);
    connection.channels.set(name, channel);
    return channel;
  }

  async function advance(at: Timestamp): Promise<void> {
    const connection = current;
    if (connection === undefined) return;
    for (const channel of connection.channels.values()) await deliver(connection, channel, channel.sorter.advance(at));
    await decide(connection, at, false);
    reportSession();
  }

  async function release(connection: UpstreamConnection, name: string, at: Timestamp): Promise<void> {
    const channel = connection.channels.get(name);
    if (channel !== undefined) await deliver(connection, channel, channel.sorter.release());
    await decide(connection, at, false);
  }

  async function deliver(
    connection: UpstreamConnection,
    channel: Channel,
    frames: readonly connections.HeldFrame[],
  ): Promise<void> {
    if (frames.length === 0) return;
    channel.ready = true;
    if (connection.session === "") channel.waiting = channel.waiting.concat(frames);
    else await record(connection, channel, frames);
  }

  /** Commits all items of a sorted piece together, so that after a crash the whole piece is pushed and sorted again. */
  async function record(
    connection: UpstreamConnection,
    channel: Channel,
    frames: readonly connections.HeldFrame[],
  ): Promise<void> {
    const messages = await recordFrames(connection, channel, frames, sessions.redact());
    for (const index of frames.flatMap(({ indexes }) => indexes)) watermark.finished(index, messages);
  }

  /** Finds the connection's session once its channels have sent enough, and records the frames that waited for that. */
  async function decide(connection: UpstreamConnection, at: Timestamp, final: boolean): Promise<void> {
    const { firstFrameAt, channels } = connection;
    if (connection.session !== "" || firstFrameAt === undefined) return;
    const isHeld = ({ ready, sorter }: Channel) => !ready && sorter.state === "holding";
    if (!final && [...channels.values()].some(isHeld)) return;
    const frames = [...channels.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
    const isLast = final || frames >= undecidedFrames || msBetween(firstFrameAt, at) >= undecidedMs;
    if (frames === connection.undecidedFrames && !isLast) return;
    connection.undecidedFrames = frames;
    const verdict = await sessions.find(connection, isLast);
    if (verdict === "wait") return;
    // Frames from a file come long after they happened, and those of a short process are decided on at its end.
    const isLate = connections.isFromFile(connection) || final;
    if (verdict === "new") sessions.begin(connection, isLate ? connections.beginOf(connection, firstFrameAt) : at);
    else await sessions.rejoin(connection, verdict, at);
    // Its connection may be over in a moment.
    reportSession(connection);
    for (const { name } of normalizer.channels) {
      const channel = channels.get(name);
      if (channel === undefined || channel.waiting.length === 0) continue;
      const { waiting } = channel;
      channel.waiting = [];
      await record(connection, channel, waiting);
    }
    connections.runPending(connection);
  }

  function channelEnded({ id, address, session }: UpstreamConnection, ended: ChannelEnded, at: Timestamp): number {
    const { channel, code, message, final } = ended;
    if (history.connection?.lostChannels.has(channel)) return 0;
    const reason = final ? `${message} (final for this process)` : message;
    const lost = journal.own(session, channelLost({ connection: id, address }, { channel, code, reason }), at);
    // A channel that the upstream does not have misses nothing.
    if (!final || code === unimplemented || session === "") return journal.publish([lost]);
    const open = normalizer.channels.some(({ name, replays }) => name === channel && replays);
    return journal.publish([
      lost,
      journal.own(session, sessionGap(channel, `its stream broke: ${message}`, { open }), at),
    ]);
  }

  /** Everything that the open gap missed has arrived. */
  function gapIsFilled({ session }: UpstreamConnection, channel: string, at: Timestamp): number {
    if (session === "" || !history.session?.openGaps.has(channel)) return 0;
    // A file does not contain the channels that repeat only a part.
    const isUnknown = normalizer.channels.some(({ name, replays }) => !replays && numbers.ordinal(name) > 0);
    if (channel === "" && isUnknown) return 0;
    return journal.publish([journal.own(session, gapFilled(channel), at)]);
  }

  function stateDescribed(
    { session, resumedOffset }: UpstreamConnection,
    { channel, state }: Described,
    at: Timestamp,
  ): number {
    // No known upstream sends this: the state exceeds what the log takes, or the name can't be a map key (`__proto__`).
    if (session === "" || state.byteLength > frameBytes || !/^[a-z]\w*$/.test(channel)) return 0;
    const before = history.session?.described.get(channel);
    // The tap has pushed it again.
    if (resumedOffset !== undefined && before?.at !== undefined && compareTimestamps(at, before.at) <= 0) return 0;
    // For a channel that sends nothing any more, the upstream's answer is all that is known of the state.
    const adopted = history.session?.openGaps.has(channel) ?? false;
    const isNew = before === undefined || (adopted && !before.adopted);
    if (!isNew && !normalizer.stateDiffers(channel, before.state, state, adopted)) return 0;
    return journal.publish([journal.own(session, sessionDescribed(channel, state, adopted), at)]);
  }

  /** Records the state that the upstream answered, unless something has come since that could have changed it. */
  function adopt({ session, channel, state, ordinals: { [ownChannel]: ownOrdinal, ...ordinals } }: Observed): void {
    const connection = current;
    if (connection === undefined || connection.session !== session || lastCall > (ownOrdinal ?? 0n)) return;
    if ([...connection.channels.values()].some(({ sorter }) => sorter.state === "holding")) return;
    if (Object.entries(ordinals).some(([name, ordinal]) => BigInt(numbers.ordinal(name)) !== ordinal)) return;
    const ordinalsKey = JSON.stringify(Object.entries(ordinals).map(([name, ordinal]) => [name, String(ordinal)]));
    const before = adoptedAt.get(channel);
    if (before?.ordinalsKey === ordinalsKey && !normalizer.stateDiffers(channel, before.state, state, true)) return;
    adoptedAt.set(channel, { ordinalsKey, state });
    journal.publish([journal.own(session, sessionDescribed(channel, state, true), timestampNow())]);
  }

  function publishObserved(
    { session, channels }: UpstreamConnection,
    { channel, state }: Described,
    at: Timestamp,
  ): void {
    // Held frames came before the answer and have no ordinal yet.
    const isHeld = [...channels.values()].some(({ sorter }) => sorter.state === "holding");
    if (listener.observed === undefined || session === "" || isHeld) return;
    const names = [...channelNames(normalizer), ownChannel];
    const ordinals = Object.fromEntries(names.map((name) => [name, BigInt(numbers.ordinal(name))]));
    const observed = { source, session, channel, state: bufferOf(state), ordinals, observed_at: at };
    writer.reached(writer.appended).then(
      () => listener.observed?.(observed),
      () => {}, // writing has ended, which is reported elsewhere
    );
  }

  function gap({ channel, count, bytes, reason }: Dropped, at: Timestamp): number {
    if (history.hasGap(channel, at)) return 0;
    const session = current?.session || (history.session?.open ? history.session.id : "");
    const introduction = journal.introduction(at);
    return journal.publish([
      ...introduction,
      journal.own(session, sessionGap(channel, reason, { dropped: { frames: count, bytes } }), at),
    ]);
  }

  async function close(
    connection: UpstreamConnection,
    closed: Closed,
    at: Timestamp,
    inferred = false,
  ): Promise<number> {
    for (const pieces of connection.observationPieces.values()) dropPartial(pieces);
    for (const channel of connection.channels.values()) {
      dropPartial(channel);
      await deliver(connection, channel, channel.sorter.release());
    }
    await decide(connection, at, true);
    connections.runPending(connection);
    const { id, address, session } = connection;
    const silent = silentChannels(connection, at);
    const lost = journal.own(session, upstreamLost({ connection: id, address }, closed.reason, inferred), at);
    current = undefined;
    return journal.publish([...silent, lost, ...sessions.end(id, closed, at)]);
  }

  /** Channels that sent frames before and repeated nothing now: the upstream dropped their buffer, and the rest was missed. */
  function silentChannels(
    { session, rejoined, resumedOffset, channels }: UpstreamConnection,
    at: Timestamp,
  ): Numbered[] {
    if (!rejoined || resumedOffset !== undefined) return [];
    return normalizer.channels
      .filter(({ name, replays }) => !replays && !channels.has(name) && numbers.ordinal(name) > 0)
      .map(({ name }) => journal.own(session, lostBetween(name), at));
  }

  /** The tap of the last connection is back. It continues, and pushes what it could not push before. */
  function tapIsBack(): void {
    const { connection } = history;
    if (connection?.unheardSince === undefined || connection.tap !== hello.tap) return;
    const { id, address, session } = connection;
    const at = timestampNow();
    journal.publish([journal.own(session, upstreamHeardAgain({ connection: id, address }), at)]);
    if (history.session?.id !== session || !history.session.openGaps.has("")) return;
    journal.publish([journal.own(session, gapFilled(""), at)]);
  }

  const recorder: SessionRecorder = {
    kind: "live",
    take,
    advance,
    get waiting() {
      if (current === undefined) return false;
      if (current.session === "" && current.firstFrameAt !== undefined) return true;
      return [...current.channels.values()].some(({ sorter }) => sorter.state === "holding");
    },
    committed,
    recordFact(fact, session = current?.session ?? "") {
      const at = timestampNow();
      const introduction = journal.introduction(at);
      return writer.reached(journal.publish([...introduction, journal.own(session, fact, at)]));
    },
    adopt,
    drained: () => writer.reached(writer.appended),
    injections,
    get connected() {
      const { connection } = history;
      if (current !== undefined) return true;
      return connection !== undefined && !connection.lost && connection.unheardSince === undefined;
    },
    listeners: journal.listeners,
    ended: writer.ended,
    async [Symbol.asyncDispose]() {
      closing.abort();
      await journal[Symbol.asyncDispose]();
    },
  };
  tapIsBack();
  return recorder;
}

/** A killed tap lost an unknown amount from memory. The next connection repeats it. */
function isMemoryLost(what: NonNullable<Item["what"]>): boolean {
  return what.$case === "dropped" && what.value.channel === "" && what.value.count === 0n;
}
