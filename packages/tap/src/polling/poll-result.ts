import { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { EmitContent } from "../connection-items.ts";

/** One observation of a polled upstream: a list, a single record, a stream's message, or a failure. */
export type PollResult = NonNullable<Look["seen"]>;
export type EmitResult = (result: PollResult) => void;

/** Emits poll results as frames of one channel. */
export function resultsAsFrames(emit: EmitContent, channel: string): EmitResult {
  return (seen) => {
    const bytes = Buffer.from(Look.encode({ seen }).finish());
    emit({ $case: "frame", value: { channel, bytes, more: false } });
  };
}
