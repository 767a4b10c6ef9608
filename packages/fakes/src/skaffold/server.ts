import { once } from "node:events";
import { Server, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { ApiVersion, SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { channels, services } from "@tapedeck/shared/skaffold/methods";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import { Answers, atWork, injected } from "./answers.ts";
import type { ControlName, FakeCall } from "./calls.ts";
import type { EventCall, HandlerHealth } from "./event-handler.ts";
import { EventHandler } from "./event-handler.ts";
import type { Cue, Speed } from "./playback.ts";
import { Playback } from "./playback.ts";
import { openSkaffoldPort } from "./port.ts";
import type { RecordedMessage, RecordedUpstream } from "./recording.ts";
import { mixedReplay } from "./replay.ts";
import { type LoopOptions, loopPasses } from "./timed.ts";

export type FakeSkaffoldOptions = {
  readonly recording: RecordedUpstream;
  /** 0 (default): a free one. */
  readonly port?: number;
  /** Default "max". */
  readonly speed?: Speed;
  /** Default true, as with the real one. */
  readonly leavingInReplayHangs?: boolean;
  /** Replays come in another order on every stream (chosen by this seed), with live events between replayed ones. */
  readonly mixReplays?: number;
  /** What GetState answers instead: a server that lies about itself. With `loop` by default one that is always at work. */
  readonly lie?: (api: ApiVersion, state: Buffer) => Buffer;
  /** Gives the bytes to send instead of a recorded message; called when it is sent. */
  readonly saying?: (channel: SkaffoldChannel, message: RecordedMessage) => Buffer;
  /** Plays the later dev loops again and again, as if now, with this pause (on the recording's clock) between. */
  readonly loop?: LoopOptions;
};

export type FakeSkaffold = AsyncDisposable &
  Pick<Playback, "play" | "playUntil" | "pause" | "resume" | "setSpeed" | "played"> & {
    readonly address: string;
    readonly port: number;
    /** Messages sent so far, which every connected reader has or will get; `played` counts the end of a stream, too. */
    readonly said: Readonly<Record<SkaffoldChannel, number>>;
    readonly health: Readonly<Record<SkaffoldChannel, HandlerHealth>>;
    /** Channels that hang for ever because a reader left in its replay. */
    readonly hung: readonly SkaffoldChannel[];
    /** Addresses of the connections that have opened a stream. */
    readonly peers: ReadonlySet<string>;
    /** Control and Handle calls, in the order of arrival. */
    readonly calls: readonly FakeCall[];
    /** HTTP/2 pings of clients so far; the fourth on a connection ends it, as with the real one. */
    readonly pings: () => number;
    /** GetState calls answered so far. */
    readonly stateRequests: Readonly<Record<ApiVersion, number>>;
    /**
     * Ends as the real Skaffold does: GOAWAY, a second of nothing, then the connections are cut ("graceful"); or just
     * the cut.
     */
    readonly end: (how: "graceful" | "kill") => Promise<void>;
    readonly ended: Promise<void>;
  };

/** Between GOAWAY and the end of the connections. */
const farewellMs = 1_000;

/**
 * A real gRPC server that sends the recorded events of a Skaffold process, byte for byte, and behaves as that process
 * did (docs/upstreams/skaffold.md). Nothing happens before `play`. Rejects if the port is taken.
 */
export async function startFakeSkaffold(options: FakeSkaffoldOptions): Promise<FakeSkaffold> {
  const { recording, speed = "max", leavingInReplayHangs = true, mixReplays, loop, saying } = options;
  const lie = options.lie ?? (loop && atWork);
  const over = new AbortController();
  const ended = Promise.withResolvers<void>();
  const mixReplay = mixReplays === undefined ? undefined : mixedReplay(mixReplays);
  const handlers = eachChannel(() => new EventHandler({ leavingInReplayHangs, ...(mixReplay && { mixReplay }) }));
  const cues = cuesOf({ recording, handlers, loop, saying });
  const playback = new Playback({ cues: cues.lists, speed, end: over.signal, refill: cues.refill });
  const answers = new Answers(recording);
  const stateRequests = { v1: 0, v2: 0 };
  const peers = new Set<string>();

  const server = new Server({ "grpc.max_send_message_length": -1 });
  const parts = { recording, handlers, playback, answers, stateRequests, peers, lie, kill: () => end("kill") };
  addServices(server, parts);
  const endpoint = await openSkaffoldPort(server, options.port ?? 0);

  async function end(how: "graceful" | "kill"): Promise<void> {
    if (over.signal.aborted) return ended.promise;
    over.abort();
    playback.resume();
    if (how === "graceful") {
      endpoint.leave();
      const closed = Promise.all([...endpoint.sockets].map((socket) => once(socket, "close")));
      const timer = startTimer(endpoint.cut, farewellMs);
      await closed;
      stopTimer(timer);
    }
    endpoint.cut();
    ended.resolve();
  }

  return {
    play: () => playback.play(),
    playUntil: (counts) => playback.playUntil(counts),
    pause: () => playback.pause(),
    resume: () => playback.resume(),
    setSpeed: (value) => playback.setSpeed(value),
    played: playback.played,
    end,
    peers,
    stateRequests,
    pings: () => endpoint.pings,
    address: `127.0.0.1:${endpoint.port}`,
    port: endpoint.port,
    health: eachChannel((channel) => handlers[channel].health),
    get said() {
      return eachChannel((channel) => Math.min(playback.played[channel], recording.messages[channel].length));
    },
    get hung() {
      return channels.filter((channel) => handlers[channel].health.hung);
    },
    calls: answers.calls,
    ended: ended.promise,
    [Symbol.asyncDispose]: () => end("kill"),
  };
}

type ServedParts = {
  readonly recording: RecordedUpstream;
  readonly handlers: Record<SkaffoldChannel, EventHandler>;
  readonly playback: Playback;
  readonly answers: Answers;
  readonly stateRequests: Record<ApiVersion, number>;
  readonly peers: Set<string>;
  readonly lie: FakeSkaffoldOptions["lie"];
  readonly kill: () => Promise<void>;
};

function addServices(server: Server, parts: ServedParts): void {
  const { generation } = parts.recording;
  const { handlers, peers } = parts;

  function stream(channel: SkaffoldChannel) {
    return async (call: EventCall) => {
      peers.add(call.getPeer());
      await handlers[channel].open(call);
    };
  }

  // Up to 0.41 the client streamed to Events too, and there was no v2.
  const eventsV1 = { ...services.v1.events, requestStream: generation === "A" };
  const v1 = { ...unaryMethods(parts, "v1"), events: stream("v1"), eventLog: stream("v1") };
  server.addService({ ...services.v1, events: eventsV1 }, v1);
  if (generation === "A") return;
  const v2 = { ...unaryMethods(parts, "v2"), events: stream("v2"), applicationLogs: stream("logs") };
  server.addService(services.v2, v2);
}

function unaryMethods(
  { recording, handlers, playback, answers, stateRequests, lie, kill }: ServedParts,
  api: ApiVersion,
) {
  function getState(_: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) {
    stateRequests[api]++;
    const state = answers.state(api, playback.played[api], playback.now);
    reply(null, lie?.(api, state) ?? state);
  }

  function control(name: ControlName) {
    return async (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const { answer, recorded } = answers.control(api, name, call.getPath(), call.request);
      if (answer === undefined) return kill();
      if (answer.code !== status.OK) return reply({ code: answer.code, details: answer.message });
      // A recorded one is followed by its event in the recording, when that is played on.
      if (name === "Handle" && !recorded) {
        const { channel, bytes } = injected(api, call.request);
        await handlers[channel].handOver(bytes);
      }
      if (name === "Execute" && api === "v1") playback.skipBreak();
      reply(null, answer.response);
    };
  }

  const auto = { autoBuild: control("AutoBuild"), autoSync: control("AutoSync"), autoDeploy: control("AutoDeploy") };
  const methods = { getState, execute: control("Execute"), handle: control("Handle") };
  return recording.generation === "C" ? { ...methods, ...auto } : methods;
}

type Cues = { readonly lists: Record<SkaffoldChannel, Cue[]>; readonly refill: () => void };

type Cued = Pick<ServedParts, "recording" | "handlers"> & {
  readonly loop: FakeSkaffoldOptions["loop"];
  readonly saying: FakeSkaffoldOptions["saying"];
};

function cuesOf({ recording, handlers, loop, saying = (_, { bytes }) => bytes }: Cued): Cues {
  const lists: Record<SkaffoldChannel, Cue[]> = { v1: [], v2: [], logs: [] };
  const add = (channel: SkaffoldChannel, message: RecordedMessage, bytes: () => Buffer, afterPause = false) => {
    // Application logs are kept for one loop only.
    const startsLoop = channel === "v2" && isLoopStart(message.bytes);
    const happen = async () => {
      if (startsLoop) handlers.logs.clear();
      await handlers[channel].handOver(bytes());
      // v2's events after its break are unknown, but it continued beside v1: an empty message stands in for them.
      if (channel === "v1" && recording.ends.v2 !== undefined && handlers.v2.health.doomed) {
        await handlers.v2.handOver(Buffer.alloc(0));
      }
    };
    lists[channel].push({ channel, at: message.at, happen, afterPause });
  };
  if (loop !== undefined) {
    const passes = loopPasses(recording, loop);
    const refill = () => {
      const pass = passes.next().value;
      const first = Math.min(...channels.map((channel) => pass[channel][0]?.at ?? Number.POSITIVE_INFINITY));
      for (const channel of channels) {
        for (const message of pass[channel]) add(channel, message, message.stamped, message.at === first);
      }
    };
    return { lists, refill };
  }
  for (const channel of channels) {
    for (const message of recording.messages[channel]) add(channel, message, () => saying(channel, message));
    const end = recording.ends[channel];
    if (end !== undefined) lists[channel].push({ channel, at: end.at, happen: () => handlers[channel].breakOff(end) });
  }
  return { lists, refill: () => {} };
}

/** A test may play what is no message at all. */
function isLoopStart(bytes: Buffer): boolean {
  try {
    const event = Event.decode(bytes).event_type;
    return event?.$case === "taskEvent" && event.value.task === "DevLoop" && event.value.status === "InProgress";
  } catch {
    return false;
  }
}

function eachChannel<T>(make: (channel: SkaffoldChannel) => T): Record<SkaffoldChannel, T> {
  return { v1: make("v1"), v2: make("v2"), logs: make("logs") };
}
