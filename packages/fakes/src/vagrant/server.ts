import { Server } from "@grpc/grpc-js";
import { type CallCount, CallCounts } from "../call-counts.ts";
import { openPort } from "../port.ts";
import { unaryAnswers } from "./answers.ts";
import { CallGates, type FakeCall } from "./calls.ts";
import { type Playback, playAsNow, playSample } from "./playback.ts";
import { VagrantProcess } from "./process.ts";
import type { RecordedAnswer, RecordedUpstream } from "./recording.ts";
import { implementation, rawService } from "./service.ts";
import { makeDatabase, type ServerDatabase } from "./state/database.ts";
import type { JobStream, StreamGates } from "./state/job-stream.ts";
import type { JobHooks } from "./state/jobs.ts";
import { makeStamps } from "./state/stamps.ts";
import { type Generation, scrub } from "./state/targets.ts";
import type { RecordedStep } from "./steps.ts";

export type FakeVagrantOptions = {
  /** 0 (default): a free one. */
  readonly port?: number;
  /** Default a new one. Another fake's: as several vagrant commands share one. */
  readonly database?: ServerDatabase;
  /** Default "2.3". "2.4" takes jobs init_basis and init_project and replaces a target's record. */
  readonly generation?: Generation;
  /** Ms since 1970. */
  readonly now?: () => number;
  /** Goes away so many ms after a job with a command is over, as a built-in server does (about 100). */
  readonly dieAfter?: number;
  /** How many finished jobs are known; older ones are forgotten (10,000). */
  readonly remembered?: number;
  /** Expires jobs when their time is over, as the real server does. Otherwise only `jobs.expire` does. */
  readonly expires?: boolean;
  /** Answers a unary call instead of the fake, unless it gives undefined. */
  readonly lie?: (call: FakeCall) => RecordedAnswer | undefined;
};

/** A part of a GetJobStream: its states, or its output. */
export type StreamPart = "states" | "output";

export type FakeVagrant = AsyncDisposable & {
  readonly address: string;
  readonly port: number;
  readonly database: ServerDatabase;
  /** The hooks of the process that runs now; each finds only the jobs that this process knows. */
  readonly jobs: JobHooks;
  /** Bytes of a unary method's answer, as if a client had called it; by its name on the wire. Throws a Refusal. */
  readonly call: (rpc: string, request: Buffer) => Buffer;
  readonly calls: (rpc: string) => CallCount;
  /** The newest 1,000 calls, in the order of arrival. */
  readonly newestCalls: readonly FakeCall[];
  /** Addresses of the connections that have made a call. */
  readonly peers: ReadonlySet<string>;
  /** Calls of this method are not answered before the function returned is called. */
  readonly hold: (rpc: string) => () => void;
  /**
   * GetJobStreams send nothing of this until the returned function is called, and then only what holds by then: states
   * between are skipped, and live output of a job that is over by then is lost to a stream that had begun to send it.
   */
  readonly holdStreams: (part: StreamPart) => () => void;
  /** GetJobStreams that are open. */
  readonly streams: () => number;
  /** GetJobStreams whose client has not read all yet. */
  readonly fullStreams: () => number;
  /** "crashed: <why>" once a request has ended the process. */
  readonly crashed: string | undefined;
  /** Resolves with `crashed` when that happens. */
  readonly crash: Promise<string>;
  /** The network is: connections are reset, the port refuses; the process and all that it knows stays. */
  readonly cut: () => Promise<void>;
  readonly mend: () => Promise<void>;
  /** The process is gone: connections are reset, the port refuses, hooks throw. */
  readonly goAway: () => Promise<void>;
  /**
   * Does what a vagrant command does at its end: deletes targets that are not at their provider, prunes old jobs, and
   * exits.
   */
  readonly leave: () => Promise<void>;
  /** Deletes targets that are NOT_CREATED or DESTROYED, as each command does at its end. */
  readonly scrub: () => void;
  /**
   * A new process on the same database and port: finished jobs and all output are forgotten. Rejects if it can't start
   * because of a job that can't be read.
   */
  readonly restart: () => Promise<void>;
  /** Plays the recorded client and runner step by step. */
  readonly playSample: (recording: RecordedUpstream) => Playback;
  /** Such steps as if they happened now, with new ids; `names` has the ids here by those in the steps, and learns. */
  readonly playAsNow: (steps: readonly RecordedStep[], names: Map<string, string>) => Playback;
  /** A new ULID by the fake's clock. */
  readonly newId: () => string;
};

/**
 * A Vagrant server of v2.3.7 or v2.4, real in its protocol and its behaviour (docs/upstreams/vagrant.md), faults
 * included, with its runners played by hooks. Requests that end the real one's process end this one. Rejects if the port
 * is taken.
 */
export async function startFakeVagrant(options: FakeVagrantOptions = {}): Promise<FakeVagrant> {
  const { database = makeDatabase(), generation = "2.3", remembered = 10_000, dieAfter, expires, lie } = options;
  const stamps = makeStamps(options.now ?? (() => performance.timeOrigin + performance.now()));
  const calls = new CallCounts<FakeCall>();
  const callGates = new CallGates();
  const peers = new Set<string>();
  const vagrant = new VagrantProcess({
    database,
    stamps,
    generation,
    remembered,
    dieAfter,
    expires,
    port: () => endpoint,
  });
  const { streams, hooks, crashWith: crash } = vagrant;
  const held = new HeldStreams(streams);
  const jobs = () => vagrant.jobs;

  const version = generation === "2.3" ? "2.3.7" : "2.4.3";
  const answers = unaryAnswers({ database, stamps, generation, version, jobs });
  const server = new Server();
  const gates = () => held.gates;
  const shared = { database, answers, calls, callGates, peers, streams, crash, lie, jobs, held: gates };
  server.addService(rawService, implementation(shared));
  const endpoint = await openPort(server, options.port ?? 0);

  const call = (rpc: string, request: Buffer): Buffer =>
    vagrant.inside(() => {
      const answer = answers.get(rpc);
      if (answer === undefined) throw new Error(`${rpc} is no unary method`);
      return answer(request);
    });
  const played = { database, stamps, jobs: hooks, call };

  return {
    address: `127.0.0.1:${endpoint.port}`,
    port: endpoint.port,
    database,
    jobs: hooks,
    call,
    peers,
    calls: calls.of,
    newestCalls: calls.newest,
    hold: callGates.hold,
    holdStreams: (part) => held.hold(part),
    streams: () => streams.size,
    fullStreams: () => [...streams].filter((stream) => stream.isFull()).length,
    get crashed() {
      return vagrant.crashed;
    },
    crash: vagrant.crash,
    cut: () => endpoint.close(),
    mend: vagrant.mend,
    goAway: vagrant.goAway,
    leave: vagrant.leave,
    scrub: () => scrub(database),
    restart: vagrant.restart,
    playSample: (recording) => playSample(played, recording),
    playAsNow: (steps, names) => playAsNow(played, steps, names),
    newId: stamps.id,
    [Symbol.asyncDispose]: async () => {
      await vagrant.goAway();
      server.forceShutdown();
    },
  };
}

/** The parts that open GetJobStreams may not send at the moment. */
class HeldStreams {
  readonly #streams: ReadonlySet<JobStream>;
  readonly #holders = { states: 0, output: 0 };

  constructor(streams: ReadonlySet<JobStream>) {
    this.#streams = streams;
  }

  get gates(): StreamGates {
    return { states: this.#holders.states > 0, output: this.#holders.output > 0 };
  }

  hold(part: StreamPart): () => void {
    this.#holders[part]++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#holders[part]--;
      isHeld = false;
      for (const stream of [...this.#streams]) stream.go();
    };
  }
}
