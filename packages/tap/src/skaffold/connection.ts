import { setImmediate, setTimeout } from "node:timers/promises";
import {
  Client,
  type ClientReadableStream,
  connectivityState,
  credentials,
  type ServiceError,
  type StatusObject,
  status,
} from "@grpc/grpc-js";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import type { ControlAnswer, ControlRequest, Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { type Api, apis, type Channel, services, streamMethods, unaryMethods } from "@tapedeck/shared/skaffold/methods";
import type { BrokenChannels } from "../tap.ts";
import { otherProcess } from "./other-process.ts";
import { describing } from "./state-poll.ts";

export type ConnectionOptions = {
  readonly host: string;
  readonly port: number;
  readonly channels: readonly Channel[];
  /** Known of the process that was there before, which may be this one. */
  readonly broken: BrokenChannels | undefined;
  /** Told what must be known instead, before anything else is done. */
  readonly onBroken: (broken: BrokenChannels | undefined) => void;
  readonly emit: (what: NonNullable<Item["what"]>) => void;
  /** While nothing is open yet: gives up. */
  readonly signal: AbortSignal;
};

export type Connection = {
  /** Resolves when the connection is lost, with why. */
  readonly over: Promise<string>;
  /** Some message came. */
  readonly spoke: () => boolean;
  readonly control: (request: ControlRequest) => Promise<ControlAnswer>;
  /** Goes away in an idle moment. */
  readonly leave: () => Promise<void>;
};

const clientOptions = {
  // An event can be larger than the default of 4 MiB.
  "grpc.max_receive_message_length": -1,
  "grpc.max_send_message_length": -1,
  // What the event loop of ours is late for waits here and not in Skaffold.
  "grpc-node.flow_control_window": 8 * 1024 * 1024,
  // A connection of its own for every process; nothing is shared with an earlier one. No keepalive: Skaffold hangs
  // up on clients that ping more often than every five minutes (docs/upstreams/skaffold.md#server).
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  // For a port that opens, closes and opens again while we connect.
  "grpc.initial_reconnect_backoff_ms": 50,
  "grpc.max_reconnect_backoff_ms": 100,
  // Neither does it take a way round, nor hang up by itself when nothing is asked for a while.
  "grpc.enable_http_proxy": 0,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
};

const connectMs = 2_000;
const controlMs = 30_000;
const stateMs = 5_000;
const idleMs = 300;
const idleStepMs = 30;
const leaveMs = 5_000;
/** In the replay leaving would hang Skaffold for good, so that lasts longer before we go anyway. */
const leaveReplayMs = 30_000;

/**
 * Opens the streams of one process, all on one connection; what broke only when it turns out to be another process.
 * Undefined if nothing there speaks gRPC.
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection | undefined> {
  const { host, port, channels, broken: before, onBroken, emit, signal } = options;
  const client = new Client(`${host}:${port}`, credentials.createInsecure(), clientOptions);
  if (!(await isReady(client, signal)) || signal.aborted) {
    client.close();
    return undefined;
  }
  const broken = new Set(before?.channels);
  const sound = channels.filter((channel) => !broken.has(channel));
  emit({ $case: "dialled", value: { address: `${host}:${port}`, channels: sound } });

  const over = Promise.withResolvers<string>();
  const live = new Map<Channel, ClientReadableStream<Buffer>>();
  const last = new Map<Channel, { readonly bytes: Buffer; readonly at: number }>();
  let askedAt = 0;
  let heardAt = 0;
  let isLeaving = false;
  const states = describing((api) => describe(client, api, emit));
  const witness = sound.find((channel) => channel === before?.heard?.channel);
  const other = otherProcess(before?.heard?.at ?? Number.POSITIVE_INFINITY, openDoubtful);

  for (const channel of sound) open(channel);
  states.ask();
  // All are broken: stay until the process goes, as below.
  if (live.size === 0) void lost(client).then(() => finish("the connection was lost"));

  function open(channel: Channel): void {
    askedAt = Date.now();
    heardAt = performance.now();
    const method = streamMethods[channel];
    // Until 0.41 v1 Events took a stream too: one message and a half-close serve both.
    const stream = client.makeServerStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      Buffer.alloc(0),
    );
    live.set(channel, stream);
    stream.on("data", (bytes: Buffer) => {
      heardAt = performance.now();
      last.set(channel, { bytes, at: heardAt });
      emit({ $case: "frame", value: { channel, bytes, more: false } });
      if (channel === witness) other.said(momentOf(channel, bytes));
      if (channel === "v1") states.see(bytes);
    });
    void ended(channel, stream);
  }

  /** What broke before did so on another process. */
  function openDoubtful(): void {
    for (const channel of before?.channels ?? []) broken.delete(channel);
    tellBroken();
    for (const channel of channels) if (!sound.includes(channel)) open(channel);
  }

  function tellBroken(): void {
    const said = apis
      .filter((api) => !broken.has(api))
      .map((channel) => ({ channel, at: momentOf(channel, last.get(channel)?.bytes) }));
    onBroken(broken.size === 0 ? undefined : { channels: [...broken], heard: said.find(({ at }) => at > 0) });
  }

  /**
   * A stream that ends while the connection lives is never opened again on this process: that would replay the whole
   * log into a busy process, which can hang it, and end the other streams for nothing. What still flows is recorded.
   */
  async function ended(channel: Channel, stream: ClientReadableStream<Buffer>): Promise<void> {
    const { code, details } = await statusOf(stream);
    await setImmediate();
    live.delete(channel);
    if (channel === witness) other.stop();
    if (isLeaving) return;
    const isAlive = client.getChannel().getConnectivityState(false) === connectivityState.READY;
    if (isAlive || isRefusal(code, details)) {
      // To ask for what it does not have does no harm, and on this port there may be another process by then.
      if (code !== status.UNIMPLEMENTED) {
        broken.add(channel);
        tellBroken();
      }
      emit({ $case: "channel_ended", value: { channel, code, message: details, final: true } });
    }
    if (live.size > 0) return;
    // Nothing left to hear, but a new connection would hear the same: stay until the process goes.
    if (isAlive) await lost(client);
    finish(`${status[code]}: ${details}`);
  }

  function finish(reason: string): void {
    states.stop();
    other.stop();
    client.close();
    over.resolve(reason);
  }

  function isInReplay(): boolean {
    const busy = [...last].filter(([channel, { at }]) => live.has(channel) && performance.now() - at < idleMs);
    return busy.some(([channel, { bytes }]) => momentOf(channel, bytes) < askedAt);
  }

  /** Idle streams have no replay under way; and what was said after the dial is not replayed (or was mixed into it). */
  async function idle(): Promise<void> {
    const start = performance.now();
    let quiet = start - heardAt;
    while (live.size > 0) {
      const waited = performance.now() - start;
      if (quiet >= idleMs || waited >= leaveReplayMs || (waited >= leaveMs && !isInReplay())) return;
      const heardBefore = heardAt;
      await setTimeout(idleStepMs);
      // A busy machine may hold us up for longer than that, and then what has come meanwhile is not read yet.
      quiet = heardAt === heardBefore ? quiet + idleStepMs : 0;
    }
  }

  return {
    over: over.promise,
    spoke: () => last.size > 0,
    control: (request) => control(client, request),
    leave: async () => {
      other.stop();
      await idle();
      isLeaving = true;
      for (const stream of live.values()) stream.cancel();
      finish("the tap has left");
    },
  };
}

function isReady(client: Client, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const giveUp = () => resolve(false);
    signal.addEventListener("abort", giveUp, { once: true });
    client.waitForReady(Date.now() + connectMs, (error) => {
      signal.removeEventListener("abort", giveUp);
      resolve(error === undefined);
    });
  });
}

/** Resolves when all that came before the status has been taken. */
async function statusOf(stream: ClientReadableStream<Buffer>): Promise<StatusObject> {
  const taken = new Promise((resolve) => stream.on("end", resolve));
  // The same as the status, but somebody has to listen.
  stream.on("error", () => {});
  const given = await new Promise<StatusObject>((resolve) => stream.on("status", resolve));
  await taken;
  return given;
}

/** Old servers lack v2; and text that is not UTF-8 breaks v2 for the rest of a process. */
function isRefusal(code: number, details: string): boolean {
  return code === status.UNIMPLEMENTED || (code === status.INTERNAL && details.includes("UTF-8"));
}

function lost(client: Client): Promise<void> {
  const channel = client.getChannel();
  return new Promise((resolve) =>
    channel.watchConnectivityState(connectivityState.READY, Number.POSITIVE_INFINITY, () => resolve()),
  );
}

/** Ms since 1970; 0 for what can't be read. */
function momentOf(channel: Channel, bytes: Buffer | undefined): number {
  if (bytes === undefined) return 0;
  try {
    const { timestamp } = channel === "v1" ? LogEntry.decode(bytes) : Event.decode(bytes);
    return timestamp === undefined ? 0 : Number(timestamp.seconds) * 1_000 + timestamp.nanos / 1_000_000;
  } catch {
    return 0;
  }
}

type Reply = { readonly code: number; readonly message: string; readonly response: Buffer };

function callUnary(client: Client, path: string, request: Buffer, timeoutMs: number): Promise<Reply> {
  const method = unaryMethods.get(path);
  if (method === undefined) {
    return Promise.resolve(failed(status.UNIMPLEMENTED, `Skaffold has no method ${path}`));
  }
  return new Promise((resolve) => {
    const done = (error: ServiceError | null, response?: Buffer) =>
      resolve(
        error ? failed(error.code, error.details) : { code: status.OK, message: "", response: response as Buffer },
      );
    const deadline = Date.now() + timeoutMs;
    client.makeUnaryRequest(path, method.requestSerialize, method.responseDeserialize, request, { deadline }, done);
  });
}

function failed(code: number, message: string): Reply {
  return { code, message, response: Buffer.alloc(0) };
}

async function control(client: Client, { call, method, request }: ControlRequest): Promise<ControlAnswer> {
  return { call, ...(await callUnary(client, method, Buffer.from(request), controlMs)) };
}

async function describe(client: Client, api: Api, emit: ConnectionOptions["emit"]): Promise<void> {
  const { code, response } = await callUnary(client, services[api].getState.path, Buffer.alloc(0), stateMs);
  if (code === status.OK) emit({ $case: "described", value: { channel: api, state: response } });
}
