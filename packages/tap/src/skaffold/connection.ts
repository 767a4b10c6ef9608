import { setImmediate } from "node:timers/promises";
import type { ClientReadableStream } from "@grpc/grpc-js";
import { type Client, status } from "@grpc/grpc-js";
import type { ControlAnswer, ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { ApiVersion, SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { apis, channels, services, streamMethods, unaryMethods } from "@tapedeck/shared/skaffold/methods";
import { delay } from "@tapedeck/shared/sync/delay";
import { msOfTimestamp } from "@tapedeck/shared/time/timestamp";
import type { EmitContent } from "../connection-items.ts";
import type { BrokenChannels } from "../tap.ts";
import { callUnary, failedReply } from "../unary-call.ts";
import { connectClient, connectionLost, isConnected, isRefusal, statusOf } from "./client.ts";
import { timestampOf } from "./frame-timestamp.ts";
import { OtherProcessDetector } from "./other-process.ts";
import { StatePoll } from "./state-poll.ts";

export type SkaffoldConnectionOptions = {
  /** "127.0.0.1:50051". */
  readonly address: string;
  readonly skipChannels: readonly string[];
  /** The broken channels of the process that was there before, which may be this one. */
  readonly broken: BrokenChannels | undefined;
  /** Called with the new value before anything else happens. */
  readonly onBroken: (broken: BrokenChannels | undefined) => void;
  readonly emit: EmitContent;
};

const controlMs = 30_000;
const stateMs = 5_000;
const idleMs = 300;
const idleStepMs = 30;
const leaveMs = 5_000;
/** Leaving during a replay would hang Skaffold for good, so the tap waits longer for its end. */
const leaveReplayMs = 30_000;

/** Connects to one process and opens its streams. Undefined if nothing there speaks gRPC, or when the signal aborts first. */
export async function openConnection(
  options: SkaffoldConnectionOptions,
  signal: AbortSignal,
): Promise<SkaffoldConnection | undefined> {
  const client = await connectClient(options.address, signal);
  if (client === undefined) return undefined;
  const connection = new SkaffoldConnection(client, options);
  connection.start();
  return connection;
}

/**
 * The streams of one process, all on one connection. Channels that broke before are opened only when this turns out to be
 * another process.
 */
export class SkaffoldConnection {
  readonly #client: Client;
  readonly #options: SkaffoldConnectionOptions;
  readonly #over = Promise.withResolvers<string>();
  readonly #open = new Map<SkaffoldChannel, ClientReadableStream<Buffer>>();
  readonly #last = new Map<SkaffoldChannel, { readonly bytes: Buffer; readonly at: number }>();
  readonly #channels: readonly SkaffoldChannel[];
  readonly #broken: Set<string>;
  /** The channels that are not known to be broken. */
  readonly #sound: readonly SkaffoldChannel[];
  /** The channel by which the process is compared with the one before. */
  readonly #witness: SkaffoldChannel | undefined;
  readonly #states = new StatePoll((api) => this.#getState(api));
  readonly #otherProcess: OtherProcessDetector;
  #openedAt = 0;
  #dialledAt = 0;
  #isLeaving = false;

  constructor(client: Client, options: SkaffoldConnectionOptions) {
    const { broken, skipChannels } = options;
    this.#client = client;
    this.#options = options;
    this.#broken = new Set(broken?.channels);
    this.#channels = channels.filter((channel) => !skipChannels.includes(channel));
    this.#sound = this.#channels.filter((channel) => !this.#broken.has(channel));
    this.#witness = this.#sound.find((channel) => channel === broken?.heard?.channel);
    const lastSeen = broken?.heard?.at ?? Number.POSITIVE_INFINITY;
    this.#otherProcess = new OtherProcessDetector(lastSeen, () => this.#openDoubtful());
  }

  /** Resolves with the reason when the connection is lost. */
  get over(): Promise<string> {
    return this.#over.promise;
  }

  /** A message has come. */
  get hasSpoken(): boolean {
    return this.#last.size > 0;
  }

  start(): void {
    const { address, emit } = this.#options;
    emit({ $case: "dialled", value: { address, channels: [...this.#sound] } });
    for (const channel of this.#sound) this.#openStream(channel);
    this.#states.request();
    // All channels are broken: stays until the process goes, as in #streamEnded.
    if (this.#open.size === 0) void connectionLost(this.#client).then(() => this.#finish("the connection was lost"));
  }

  async control({ call, method, request }: ControlRequest): Promise<ControlAnswer> {
    if (!unaryMethods.has(method)) {
      return { call, ...failedReply(status.UNIMPLEMENTED, `Skaffold has no method ${method}`) };
    }
    return { call, ...(await callUnary(this.#client, method, request, { timeoutMs: controlMs })) };
  }

  /** Leaves in an idle moment. */
  async leave(): Promise<void> {
    this.#otherProcess.stop();
    await this.#idle();
    this.#isLeaving = true;
    for (const stream of this.#open.values()) stream.cancel();
    this.#finish("the tap has disconnected");
  }

  #openStream(channel: SkaffoldChannel): void {
    this.#openedAt = Date.now();
    this.#dialledAt = performance.now();
    const { path, requestSerialize, responseDeserialize } = streamMethods[channel];
    // Until 0.41 v1 Events took a stream too: one message and a half-close serve both.
    const request = Buffer.alloc(0);
    const stream = this.#client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, request);
    this.#open.set(channel, stream);
    stream.on("data", (bytes: Buffer) => this.#take(channel, bytes));
    void this.#awaitEnd(channel, stream);
  }

  #take(channel: SkaffoldChannel, bytes: Buffer): void {
    this.#last.set(channel, { bytes, at: performance.now() });
    this.#options.emit({ $case: "frame", value: { channel, bytes, more: false } });
    if (channel === this.#witness) this.#otherProcess.messageAt(msOf(bytes));
    if (channel === "v1") this.#states.takeFrame(bytes);
  }

  /** The channels broke on another process, so this one may be asked for them. */
  #openDoubtful(): void {
    const { broken } = this.#options;
    for (const channel of broken?.channels ?? []) this.#broken.delete(channel);
    this.#reportBroken();
    for (const channel of this.#channels) if (!this.#sound.includes(channel)) this.#openStream(channel);
  }

  #reportBroken(): void {
    const lastTimes = apis
      .filter((api) => !this.#broken.has(api))
      .map((channel) => ({ channel, at: msOf(this.#last.get(channel)?.bytes) }));
    const lastSeen = lastTimes.find(({ at }) => at > 0);
    this.#options.onBroken(this.#broken.size === 0 ? undefined : { channels: [...this.#broken], heard: lastSeen });
  }

  /**
   * A stream that ends while the connection lives is never opened again on this process: that would replay the whole log
   * into a busy process, which can hang it, and end the other streams for nothing. The other streams are recorded on.
   */
  async #awaitEnd(channel: SkaffoldChannel, stream: ClientReadableStream<Buffer>): Promise<void> {
    const end = await statusOf(stream);
    const { code, details } = end;
    await setImmediate();
    this.#open.delete(channel);
    if (channel === this.#witness) this.#otherProcess.stop();
    if (this.#isLeaving) return;
    const isAlive = isConnected(this.#client);
    if (isAlive || isRefusal(end)) {
      // Asking again for a method that is missing does no harm, and another process may listen on this port by then.
      if (code !== status.UNIMPLEMENTED) {
        this.#broken.add(channel);
        this.#reportBroken();
      }
      const value = { channel, code, message: details, final: true };
      this.#options.emit({ $case: "channel_ended", value });
      // From now on the process's own answer is all that is known of this API's state, and no loop may end any more.
      if (isAlive && this.#broken.has(channel)) this.#states.request();
    }
    if (this.#open.size > 0) return;
    // Nothing more will come, but a new connection would get the same: stays until the process goes.
    if (isAlive) await connectionLost(this.#client);
    this.#finish(`${status[code]}: ${details}`);
  }

  #finish(reason: string): void {
    this.#states.stop();
    this.#otherProcess.stop();
    this.#client.close();
    this.#over.resolve(reason);
  }

  async #getState(api: ApiVersion): Promise<void> {
    const path = services[api].getState.path;
    const { code, response } = await callUnary(this.#client, path, Buffer.alloc(0), { timeoutMs: stateMs });
    if (code === status.OK) this.#options.emit({ $case: "described", value: { channel: api, state: response } });
  }

  /** Resolves when the streams are idle, which means that no replay is under way, or when they have been busy for too long. */
  async #idle(): Promise<void> {
    const start = performance.now();
    const quiet = new Map<SkaffoldChannel, number>();
    // At least one step is waited for: before it this process may have been held up, and what has arrived is not read.
    for (const channel of this.#open.keys()) {
      const heardAt = this.#last.get(channel)?.at ?? this.#dialledAt;
      quiet.set(channel, Math.min(start - heardAt, idleMs - idleStepMs));
    }
    const isBusy = (channel: SkaffoldChannel) => (quiet.get(channel) ?? 0) < idleMs;
    while ([...this.#open.keys()].some(isBusy)) {
      const waited = performance.now() - start;
      if (waited >= leaveReplayMs || (waited >= leaveMs && !this.#isInReplay(isBusy))) return;
      const before = new Map(this.#last);
      await delay(idleStepMs);
      // A busy machine may delay us for longer than that, so steps are counted and not the time.
      for (const channel of this.#open.keys()) {
        const isQuiet = this.#last.get(channel) === before.get(channel);
        quiet.set(channel, isQuiet ? (quiet.get(channel) ?? 0) + idleStepMs : 0);
      }
    }
  }

  /** A busy stream whose last message is newer than the dial is past its replay, or the message was mixed into it. */
  #isInReplay(isBusy: (channel: SkaffoldChannel) => boolean): boolean {
    return [...this.#last].some(
      ([channel, { bytes }]) => this.#open.has(channel) && isBusy(channel) && msOf(bytes) < this.#openedAt,
    );
  }
}

/** A message's own time in ms since 1970; 0 if it can't be read. */
function msOf(bytes: Buffer | undefined): number {
  const timestamp = bytes === undefined ? undefined : timestampOf(bytes);
  return timestamp === undefined ? 0 : msOfTimestamp(timestamp);
}
