import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { EmitContent } from "../connection-items.ts";

/** One observation of a polled upstream: a list, a single record, a stream's message, or a failure. */
export type PollResult = NonNullable<Observation["result"]>;
export type EmitResult = (result: PollResult) => void;

/** Emits poll results as frames of one channel. */
export function resultsAsFrames(emit: EmitContent, channel: string): EmitResult {
  return (result) => {
    const bytes = Buffer.from(Observation.encode({ result }).finish());
    emit({ $case: "frame", value: { channel, bytes, more: false } });
  };
}
