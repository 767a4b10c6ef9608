import { status } from "@grpc/grpc-js";
import { PublicAPIService } from "@tapedeck/proto/rkt/v1alpha/rkt";
import type { EmitContent } from "../connection-items.ts";
import type { PolledConnection } from "../polling/connection.ts";
import type { DialledServer } from "../polling/dial.ts";
import { DialLoop } from "../polling/dial-loop.ts";
import { resultsAsFrames } from "../polling/poll-result.ts";
import { milliseconds } from "../polling/settings.ts";
import type { RunningTap, TapOptions, UpstreamTap } from "../tap.ts";
import { failedReply } from "../unary-call.ts";
import { wallClock } from "../wall-clock.ts";
import { rktServer } from "./connection.ts";
import { TextFollower } from "./follow-texts.ts";
import { HostOutput } from "./host-output.ts";
import { ImageDoubts, PodDoubts } from "./list-doubts.ts";
import { channels, imageMethods, podMethods, type RktChannel } from "./methods.ts";
import { InventoryPoll, type InventoryPollOptions } from "./poll-inventory.ts";

const dialDelays = { awayMs: { first: 250, longest: 5_000 }, steadyMs: 5_000 };

/**
 * Polls one rkt host, because rkt has no events. It concludes nothing: it only requests at once what one list makes
 * doubtful about the one before. Settings, in ms: `interval` between two polls of the pods (or images), by default 1000,
 * and `timeout` of one call, by default 10000. `load`: percent of one of the host's processors that polling may take, by
 * default 2.
 */
export const tap: UpstreamTap = { livesInCommand: false, run };

function run(options: TapOptions): RunningTap {
  const { address, emit, signal, settings = {} } = options;
  const channels = channelsOf(options);
  const rkt = new RktHost(channels, settings);
  const loop = new DialLoop({
    address,
    emit,
    signal,
    channels: channels,
    timeoutMs: rkt.timeoutMs,
    now: wallClock(),
    delays: dialDelays,
    server: rktServer(address),
    infoChannel: "info",
    record: (server, emitContent) => rkt.record(server, emitContent),
  });
  return {
    done: loop.run(),
    control: async ({ call }) => ({ call, ...failedReply(status.UNIMPLEMENTED, "rkt has no control calls") }),
  };
}

/** The pods determine which logs there are, so without pods there are no logs. */
function channelsOf({ skipChannels = [] }: TapOptions): readonly RktChannel[] {
  const skipped = skipChannels.includes("pods") ? [...skipChannels, "logs"] : skipChannels;
  return channels.filter((channel) => !skipped.includes(channel));
}

/** Records the host over all connections: the first list of one connection is compared with the last list of the one before. */
class RktHost {
  readonly timeoutMs: number;
  readonly #channels: readonly RktChannel[];
  readonly #intervalMs: number;
  readonly #load: number;
  readonly #doubts = { pods: new PodDoubts(), images: new ImageDoubts() };
  #texts = new HostOutput();
  #identity: string | undefined;

  constructor(channels: readonly RktChannel[], settings: NonNullable<TapOptions["settings"]>) {
    this.timeoutMs = milliseconds(settings.timeout, 10_000);
    this.#channels = channels;
    this.#intervalMs = milliseconds(settings.interval, 1_000);
    this.#load = Number(settings.load ?? 2) / 100;
  }

  async record({ connection, identity }: DialledServer, emit: EmitContent): Promise<void> {
    if (this.#identity !== identity) this.#forget(identity);
    const follower = this.#channels.includes("logs")
      ? new TextFollower({ connection, memory: this.#texts, emit: resultsAsFrames(emit, "logs") })
      : undefined;
    const roundTripMs = await roundTrip(connection, this.timeoutMs);
    const onList = () => follower?.update(this.#doubts.pods.listed ?? []);
    const polls = [
      { channel: "pods", methods: podMethods, doubts: this.#doubts.pods, onList },
      { channel: "images", methods: imageMethods, doubts: this.#doubts.images },
    ] as const;
    const running = polls
      .filter(({ channel }) => this.#channels.includes(channel))
      .map(({ channel, ...poll }) =>
        this.#poll({ ...poll, connection, roundTripMs, emit: resultsAsFrames(emit, channel) }),
      );
    await connection.over;
    follower?.close();
    await Promise.all(running);
  }

  #poll(options: Omit<InventoryPollOptions, "intervalMs" | "load" | "timeoutMs">): Promise<void> {
    const common = { intervalMs: this.#intervalMs, load: this.#load, timeoutMs: this.timeoutMs };
    return new InventoryPoll({ ...options, ...common }).run();
  }

  /** Another host listens at the address. */
  #forget(identity: string): void {
    this.#doubts.pods.reset();
    this.#doubts.images.reset();
    this.#texts = new HostOutput();
    this.#identity = identity;
  }
}

/** The quickest of a few answers that cost rkt next to nothing. */
async function roundTrip(connection: Pick<PolledConnection, "call">, timeoutMs: number): Promise<number> {
  let quickest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 3; n += 1) {
    const requestedAt = performance.now();
    await connection.call(PublicAPIService.getInfo.path, nothing, timeoutMs);
    quickest = Math.min(quickest, performance.now() - requestedAt);
  }
  return quickest;
}

const nothing = Buffer.alloc(0);
