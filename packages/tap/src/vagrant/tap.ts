import { status } from "@grpc/grpc-js";
import type { ControlAnswer, ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { EmitContent } from "../connection-items.ts";
import type { DialledServer } from "../polling/dial.ts";
import { DialLoop } from "../polling/dial-loop.ts";
import { milliseconds } from "../polling/settings.ts";
import type { UpstreamStream } from "../push/relayed-streams.ts";
import type { RunningTap, TapOptions, UpstreamTap } from "../tap.ts";
import { failedReply } from "../unary-call.ts";
import { wallClock } from "../wall-clock.ts";
import { vagrantServer } from "./connection.ts";
import { ConnectionPolls } from "./connection-polls.ts";
import { monotonicTimes } from "./monotonic-times.ts";
import { TappedJobs } from "./tapped-jobs.ts";

const dialDelays = {
  // The server of a single command listens shortly before its first job.
  fastRetry: { forMs: 10_000, delayMs: 20 },
  awayMs: { first: 200, longest: 5_000 },
  steadyMs: 1_000,
};

/**
 * Polls one Vagrant server and follows the streams of its jobs, because no stream announces a new job or a changed
 * resource. It concludes nothing. Settings: `server`, which names the lifetime of the server where the caller knows it
 * (otherwise the address does), and `timeout` of one call in ms, by default 10000.
 */
export const tap: UpstreamTap = { livesInCommand: true, run };

function run({ address, emit, signal, settings = {} }: TapOptions): RunningTap {
  const timeoutMs = milliseconds(settings.timeout, 10_000);
  const server = new VagrantConnections(timeoutMs);
  const loop = new DialLoop({
    address,
    emit,
    signal,
    channels: ["jobs", "resources"],
    timeoutMs,
    delays: dialDelays,
    now: monotonicTimes(wallClock()),
    server: vagrantServer(settings.server || address),
    infoChannel: "version",
    record: (dialled, emitContent) => server.record(dialled, emitContent),
  });
  return {
    done: loop.run(),
    control: (request) => server.control(request),
    stream: (method) => server.stream(method),
  };
}

/** One connection after the other, and the jobs that are known over all of them. */
class VagrantConnections {
  readonly #timeoutMs: number;
  readonly #known = new TappedJobs((change) => this.#polls?.jobChanged(change));
  #polls: ConnectionPolls | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  async record({ connection }: DialledServer, emit: EmitContent): Promise<void> {
    this.#polls = new ConnectionPolls({ connection, known: this.#known, emit, timeoutMs: this.#timeoutMs });
    await this.#polls.run();
    this.#polls = undefined;
  }

  stream(method: string): UpstreamStream | undefined {
    return this.#polls?.isOver === false ? this.#polls.stream(method) : undefined;
  }

  async control(request: ControlRequest): Promise<ControlAnswer> {
    const { call } = request;
    if (this.#polls === undefined || this.#polls.isOver) {
      return { call, ...failedReply(status.UNAVAILABLE, "no connection to Vagrant") };
    }
    return { call, ...(await this.#polls.control(request)) };
  }
}
