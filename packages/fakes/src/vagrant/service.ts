import {
  type Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import {
  type GetJobStreamRequest,
  type GetJobStreamResponse,
  type GetLogStreamRequest,
  type LogBatch,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { byteService } from "../byte-service.ts";
import type { CallCounts } from "../call-counts.ts";
import { type AnswerBytes, nameOf } from "./answers.ts";
import type { CallGates, FakeCall } from "./calls.ts";
import { checkProtocol } from "./protocol.ts";
import type { RecordedAnswer } from "./recording.ts";
import type { ServerDatabase } from "./state/database.ts";
import { type JobStream, openJobStream, type StreamGates } from "./state/job-stream.ts";
import type { Jobs } from "./state/jobs.ts";
import { type Fail, runnerConfig, runnerJobStream } from "./state/runners.ts";
import { Panic, Refusal } from "./status.ts";

export type ServerOptions = {
  readonly database: ServerDatabase;
  /** The jobs of the process that runs now. */
  readonly jobs: () => Jobs;
  readonly answers: ReadonlyMap<string, AnswerBytes>;
  readonly calls: CallCounts<FakeCall>;
  readonly callGates: CallGates;
  readonly peers: Set<string>;
  /** The GetJobStreams that are open. */
  readonly streams: Set<JobStream>;
  readonly held: () => StreamGates;
  readonly crash: (reason: string) => void;
  readonly lie?: ((call: FakeCall) => RecordedAnswer | undefined) | undefined;
};

/** Unary methods take and give bytes, the streams messages. */
export const rawService = byteService(
  VagrantService,
  ({ requestStream, responseStream }) => !requestStream && !responseStream,
);

type AnyCall = {
  readonly metadata: Metadata;
  getPeer(): string;
  on(event: "cancelled", listener: () => void): unknown;
};
type AnyStream = AnyCall & { emit(event: "error", cause: object): boolean };

const none: Buffer = Buffer.alloc(0);

/** The server's implementation of each call. A Panic in any of them ends it without an answer. */
export function implementation(options: ServerOptions): UntypedServiceImplementation {
  const { database, jobs } = options;
  const calls = new AnsweredCalls(options);
  const { getJobStream, getLogStream } = VagrantService;
  const unaries = Object.entries(VagrantService).map(([key, method]) => [key, calls.unary(nameOf(method))]);
  return {
    ...Object.fromEntries(unaries),
    getJobStream: calls.stream(
      "GetJobStream",
      (call: JobStreamCall, talking) => jobStream(options, call, talking),
      (call) => getJobStream.requestSerialize(call.request),
    ),
    getLogStream: calls.stream(
      "GetLogStream",
      () => {
        throw new Refusal(status.FAILED_PRECONDITION, "invalid scope supplied");
      },
      (call: LogStreamCall) => getLogStream.requestSerialize(call.request),
    ),
    runnerConfig: calls.stream("RunnerConfig", (call: ConfigCall, { fail }) => runnerConfig(database, call, fail)),
    runnerJobStream: calls.stream("RunnerJobStream", (call: RunnerCall, { fail }) =>
      runnerJobStream(database, jobs(), call, fail),
    ),
  };
}

type Talking = { readonly fail: Fail; readonly over: () => void };

/** Counts the calls, and gives each its answer or the error that its client gets to hear of. */
class AnsweredCalls {
  readonly #options: ServerOptions;

  constructor(options: ServerOptions) {
    this.#options = options;
  }

  unary(rpc: string) {
    const { answers, callGates, lie } = this.#options;
    return async (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      const { made, over } = this.#enter(rpc, call, call.request);
      await callGates.pass(rpc);
      if (call.cancelled) return;
      over();
      try {
        if (rpc !== "GetVersionInfo") checkProtocol(call.metadata);
        const answered = lie?.(made) ?? { response: answers.get(rpc)?.(call.request) ?? none };
        if (answered.error !== undefined) throw new Refusal(answered.error.code, answered.error.details);
        reply(null, answered.response);
      } catch (cause) {
        const failed = this.#errorOf(cause);
        if (failed !== undefined) reply(failed);
      }
    };
  }

  /** Runs the method once the metadata are right, and reports its errors to the client. */
  stream<Call extends AnyStream>(
    rpc: string,
    talk: (call: Call, talking: Talking) => void,
    requestOf: (call: Call) => Buffer = () => none,
  ) {
    return (call: Call) => {
      const { over } = this.#enter(rpc, call, requestOf(call));
      const fail = (cause: unknown) => {
        over();
        const failed = this.#errorOf(cause);
        if (failed !== undefined) call.emit("error", failed);
      };
      try {
        checkProtocol(call.metadata);
        talk(call, { fail, over });
      } catch (cause) {
        fail(cause);
      }
    };
  }

  #enter(rpc: string, call: AnyCall, request = none) {
    const { calls, peers } = this.#options;
    const made = { rpc, peer: call.getPeer(), request, metadata: call.metadata.getMap() };
    peers.add(made.peer);
    const over = calls.begin(made);
    call.on("cancelled", over);
    return { made, over };
  }

  /** The error as the client gets it; undefined if it has ended the process. */
  #errorOf(cause: unknown): { code: status; details: string } | undefined {
    if (cause instanceof Panic) {
      this.#options.crash(cause.message);
      return undefined;
    }
    if (cause instanceof Refusal) return { code: cause.code, details: cause.message };
    return { code: status.INTERNAL, details: String(cause) };
  }
}

function jobStream({ jobs, held, streams }: ServerOptions, call: JobStreamCall, { fail, over }: Talking): void {
  const left = () => {
    over();
    opened.leave();
    streams.delete(opened);
  };
  const opened = openJobStream({
    jobs: jobs(),
    id: call.request.job_id,
    held,
    write: (message) => call.write(message),
    end: () => {
      left();
      call.end();
    },
    broken: (cause) => {
      left();
      fail(cause);
    },
  });
  streams.add(opened);
  call.on("cancelled", left);
  call.on("drain", opened.hasRoom);
  opened.go();
}

type JobStreamCall = ServerWritableStream<GetJobStreamRequest, GetJobStreamResponse>;
type LogStreamCall = ServerWritableStream<GetLogStreamRequest, LogBatch>;
type ConfigCall = Parameters<typeof runnerConfig>[1];
type RunnerCall = Parameters<typeof runnerJobStream>[2];
