import { Server, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData, status } from "@grpc/grpc-js";
import { PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { delay } from "@tapedeck/shared/sync/delay";
import { byteService } from "../byte-service.ts";
import { type CallCount, CallCounts } from "../call-counts.ts";
import { openPort } from "../port.ts";
import { type AnsweringHost, hostAnswers } from "./answers.ts";
import { countsOfAll, type FakeCall, gates, type Rpc } from "./calls.ts";
import { type LogAnswer, logAnswers } from "./logs.ts";
import { type Playback, type Speed, SteppedPlayback } from "./playback.ts";
import { readPolls } from "./polls.ts";
import type {
  InventoryKind,
  RecordedAnswer,
  RecordedStatus,
  RecordedUpstream,
  StreamRpc,
  UnaryRpc,
} from "./recording.ts";
import { TimedPlayback } from "./timed.ts";

export type FakeRktOptions = {
  readonly recording: RecordedUpstream;
  /** 0 (default): a free one. */
  readonly port?: number;
  /** How much faster than recorded answers and log lines come. Default "max" (they don't wait), 1 if timed. */
  readonly speed?: Speed;
  /**
   * Absent: stepped, each poll gets the next answer of the recording. Given: polls get the current answer, on a clock
   * that starts with the fake, with times and pod ids as if it happened now; in turns without an end unless `loop` is
   * false.
   */
  readonly timed?: { readonly loop?: boolean; readonly pauseMs?: number; readonly now?: () => number };
  /** Stepped: the first answer on a new connection repeats the last one before it. Nothing happened meanwhile. */
  readonly repeatOnReconnect?: boolean;
  /** Answers instead of the fake, unless it gives undefined. An answered list is not one of the recording's. */
  readonly lie?: (call: FakeCall) => RecordedAnswer | undefined;
};

export type FakeRkt = AsyncDisposable & {
  readonly address: string;
  readonly port: number;
  /** ListPods and ListImages calls that were answered, with an error too. */
  readonly polls: { readonly [K in InventoryKind]: number };
  /** Stepped: the recording's polls that were answered, each counted once. */
  readonly played: { readonly [K in InventoryKind]: number };
  /** All of them; a stepped fake only. */
  readonly allPlayed: Promise<void>;
  readonly calls: { readonly [R in Rpc]: CallCount };
  /** The newest 1,000 calls, in the order of arrival. */
  readonly newestCalls: readonly FakeCall[];
  /** Addresses of the connections that have made a call. */
  readonly peers: ReadonlySet<string>;
  /**
   * Does not answer the recording's n-th poll (from 1), or no poll at all (ListPods hangs), until the function returned is
   * called. A call that was given up meanwhile has taken nothing from the recording.
   */
  readonly hold: (kind: InventoryKind, n?: number) => () => void;
  /** Answers as a host without pods and images (a data directory that is not mounted) while it is true. */
  readonly setEmpty: (isEmpty: boolean) => void;
  /** The data directory that GetInfo returns from now on. */
  readonly setDir: (dir: string) => void;
  /** The process is gone: connections are reset, the port refuses. Where the recording stands is kept. */
  readonly goAway: () => Promise<void>;
  readonly comeBack: () => Promise<void>;
  /** Timed: the host and its clock stand still. */
  readonly pause: () => void;
  readonly resume: () => void;
};

/**
 * A real gRPC server that answers as a recorded rkt api-service did (docs/upstreams/rkt.md), byte for byte where it
 * can. Manifests that the recording has are available at any time. A list with a filter is answered as that same
 * request was recorded, otherwise with everything that the last poll returned. A poll recorded as DEADLINE_EXCEEDED is
 * never answered, one recorded as UNAVAILABLE resets the connection. Rejects if the port is taken.
 */
export async function startFakeRkt(options: FakeRktOptions): Promise<FakeRkt> {
  const { recording, lie } = options;
  const speed = options.speed ?? (options.timed === undefined ? "max" : 1);
  const { playback, clock, isOver } = makePlayback(options, speed);
  const { hold, pass } = gates();
  const host = hostAnswers(recording, playback, { pass });
  const cut = (peer: string) => endpoint.cut(peer);
  const calls = new RktCalls({ lie, speed, isOver, host, cut });

  const server = new Server({ "grpc.max_send_message_length": -1 });
  server.addService(byteService(PublicAPIService), {
    getInfo: calls.unary("GetInfo"),
    listPods: calls.unary("ListPods"),
    inspectPod: calls.unary("InspectPod"),
    listImages: calls.unary("ListImages"),
    inspectImage: calls.unary("InspectImage"),
    listenEvents: calls.stream("ListenEvents", () => ended({ code: status.UNKNOWN, details: "not implemented yet" })),
    getLogs: calls.stream("GetLogs", logAnswers(recording)),
  });
  const endpoint = await openPort(server, options.port ?? 0);

  return {
    address: `127.0.0.1:${endpoint.port}`,
    port: endpoint.port,
    polls: calls.polls,
    played: playback.played,
    allPlayed: calls.allPlayed,
    calls: countsOfAll(calls.counts),
    newestCalls: calls.counts.newest,
    peers: calls.peers,
    hold,
    setEmpty: host.setEmpty,
    setDir: host.setDir,
    goAway: () => endpoint.close(),
    comeBack: () => endpoint.open(),
    pause: () => clock?.pause(),
    resume: () => clock?.resume(),
    [Symbol.asyncDispose]: async () => {
      await endpoint.close();
      server.forceShutdown();
    },
  };
}

type RktCallsOptions = {
  readonly lie: FakeRktOptions["lie"];
  readonly speed: Speed;
  readonly isOver: () => boolean;
  readonly host: AnsweringHost;
  readonly cut: (peer: string) => void;
};

/** Counts the calls and answers each. */
class RktCalls {
  readonly #options: RktCallsOptions;
  readonly #allPlayed = Promise.withResolvers<void>();
  readonly counts = new CallCounts<FakeCall>();
  readonly polls = { pods: 0, images: 0 };
  readonly peers = new Set<string>();

  constructor(options: RktCallsOptions) {
    this.#options = options;
  }

  get allPlayed(): Promise<void> {
    return this.#allPlayed.promise;
  }

  unary(rpc: UnaryRpc) {
    const { lie, host, cut, isOver } = this.#options;
    return async (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const { made, left, over } = this.#enter(rpc, call);
      const given =
        lie?.(made) ?? unreadable(made) ?? (await host.answer(rpc, call.request, { peer: made.peer, left }));
      if (given === undefined || left.aborted) return;
      over();
      if (given === "reset") cut(made.peer);
      else if (given.error !== undefined) reply(given.error);
      else reply(null, given.response);
      if (rpc === "ListPods") this.polls.pods++;
      if (rpc === "ListImages") this.polls.images++;
      if (isOver()) this.#allPlayed.resolve();
    };
  }

  stream(rpc: StreamRpc, answer: (request: Buffer) => LogAnswer) {
    const { lie, speed } = this.#options;
    return async (call: ServerWritableStream<Buffer, Buffer>) => {
      const { made, left, over } = this.#enter(rpc, call);
      const instead = lie?.(made) ?? unreadable(made);
      const { messages, end } = instead === undefined ? answer(call.request) : asStream(instead);
      const started = performance.now();
      for (const { afterMs, bytes } of messages) {
        if (speed !== "max") await delay(afterMs / speed - (performance.now() - started), left);
        if (left.aborted) return;
        call.write(bytes);
      }
      if (end === undefined || left.aborted) return;
      over();
      if (end.code === status.OK) call.end();
      else call.emit("error", end);
    };
  }

  #enter(rpc: Rpc, call: Pick<ServerUnaryCall<Buffer, Buffer>, "getPeer" | "request" | "on">) {
    const made = { rpc, peer: call.getPeer(), request: call.request };
    this.peers.add(made.peer);
    const over = this.counts.begin(made);
    const left = new AbortController();
    call.on("cancelled", () => {
      over();
      left.abort();
    });
    return { made, left: left.signal, over };
  }
}

type PlaybackParts = {
  readonly playback: Playback;
  /** Undefined for a stepped playback, which has no clock. */
  readonly clock: Pick<TimedPlayback, "pause" | "resume"> | undefined;
  /** All polls of the recording were given. */
  readonly isOver: () => boolean;
};

function makePlayback({ recording, timed, repeatOnReconnect = false }: FakeRktOptions, speed: Speed): PlaybackParts {
  const polls = readPolls(recording);
  if (timed === undefined) {
    const playback = new SteppedPlayback(recording, polls, { speed, repeatOnReconnect });
    const { played } = playback;
    const isOver = () => played.pods === polls.pods.length && played.images === polls.images.length;
    return { playback, clock: undefined, isOver };
  }
  if (speed === "max") throw new TypeError("a timed fake needs a number as its speed");
  const { loop = true, pauseMs = 2_000, now = Date.now } = timed;
  const playback = new TimedPlayback(polls, { speed, loop, pauseMs, now });
  return { playback, clock: playback, isOver: () => false };
}

const methods = {
  GetInfo: PublicAPIService.getInfo,
  ListPods: PublicAPIService.listPods,
  InspectPod: PublicAPIService.inspectPod,
  ListImages: PublicAPIService.listImages,
  InspectImage: PublicAPIService.inspectImage,
  ListenEvents: PublicAPIService.listenEvents,
  GetLogs: PublicAPIService.getLogs,
};

/** The wording of the real server's library. */
function unreadable({ rpc, request }: FakeCall): RecordedAnswer | undefined {
  try {
    methods[rpc].requestDeserialize(request);
    return undefined;
  } catch {
    return { error: { code: status.FAILED_PRECONDITION, details: "unexpected EOF" } };
  }
}

function ended(end: RecordedStatus): LogAnswer {
  return { messages: [], end };
}

function asStream({ response, error }: RecordedAnswer): LogAnswer {
  if (error !== undefined) return ended(error);
  return { messages: [{ afterMs: 0, bytes: response }], end: { code: status.OK, details: "" } };
}
