import type { VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import type { CallContext } from "../../call-context.ts";
import type { EncodedAnswer, EncodedStream, UpstreamAnswers } from "../encoded-answer.ts";

// Every method of hashicorp.vagrant.Vagrant, by VagrantService's names, and how Tapedeck answers it. Requests and answers
// are bytes.

/** Calls that act on the Vagrant server itself. */
export const writeNames = [
  "queueJob",
  "cancelJob",
  "validateJob",
  "pruneOldJobs",
  "upsertBasis",
  "upsertProject",
  "upsertTarget",
  "deleteTarget",
  "upsertBox",
  "deleteBox",
] as const;
export type WriteName = (typeof writeNames)[number];

/** Calls that hand out tokens, which Vagrant itself no longer does. */
export const tokenNames = [
  "bootstrapToken",
  "generateInviteToken",
  "generateLoginToken",
  "convertInviteToken",
] as const;
export type TokenName = (typeof tokenNames)[number];

/** Calls of runners, whose client sends a stream. They go to the Vagrant server itself. */
export const runnerNames = ["runnerConfig", "runnerJobStream"] as const;
export type RunnerName = (typeof runnerNames)[number];

export const streamNames = ["getJobStream", "getLogStream"] as const;
export type StreamName = (typeof streamNames)[number];

/** Calls that are answered from the record. */
export type ReadName = Exclude<keyof typeof VagrantService, WriteName | TokenName | RunnerName | StreamName>;

export type UnaryMethod = (request: Uint8Array, context: CallContext) => Promise<EncodedAnswer>;
export type RunnerStream = (messages: AsyncIterable<Uint8Array>, context: CallContext) => Promise<UpstreamAnswers>;
export type StreamMethod = (request: Uint8Array, context: CallContext) => Promise<EncodedStream>;

/**
 * Vagrant's API: reads are answered from the record, writes and the streams of runners by the upstream. Everything throws UpstreamError for what
 * Vagrant refuses too, and TapedeckError (docs/api.md#errors) for the rest.
 */
export type VagrantApi = {
  readonly unary: Readonly<Record<ReadName | WriteName | TokenName, UnaryMethod>>;
  readonly streams: Readonly<Record<StreamName, StreamMethod>>;
  readonly runners: Readonly<Record<RunnerName, RunnerStream>>;
};
