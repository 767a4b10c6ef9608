import { appendFileSync } from "node:fs";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import type { ApiVersion, SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { nanosOfTimestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";
import type { RecordedMessage, RecordedUpstream } from "./recording.ts";

const types = { v1: messageType("proto.LogEntry"), v2: messageType("proto.v2.Event") };

/** Does what the real Skaffold does at its end: appends v1 to the file, and v2 to the file beside it. */
export function writeEventLog(file: string, said: Readonly<Record<ApiVersion, readonly Uint8Array[]>>): void {
  const text = (api: ApiVersion) => said[api].map((bytes) => `${eventLogLine(api, bytes)}\n`).join("");
  appendFileSync(file, text("v1"), { mode: 0o600 });
  appendFileSync(`${file}.v2`, text("v2"), { mode: 0o600 });
}

/** JSON in camelCase, without defaults; bytes that are not UTF-8 become U+FFFD. */
export function eventLogLine(api: ApiVersion, bytes: Uint8Array): string {
  return JSON.stringify(toJson(types[api], fromBinary(types[api], bytes), { registry }));
}

/** The same process, as if it began now. */
export function asNow(recording: RecordedUpstream): RecordedUpstream {
  const { v1, v2, logs } = recording.messages;
  const byMs = Date.now() - Math.min(...[v1, v2].flatMap(([first]) => (first ? [Math.floor(first.at)] : [])));
  const moved = (channel: SkaffoldChannel, messages: readonly RecordedMessage[]) =>
    messages.map((message) => movedBy(channel, message, byMs));
  return { ...recording, messages: { v1: moved("v1", v1), v2: moved("v2", v2), logs: moved("logs", logs) } };
}

/** The same message, this many milliseconds later. */
export function movedBy(channel: SkaffoldChannel, { at, bytes }: RecordedMessage, byMs: number): RecordedMessage {
  return { at: at + byMs, bytes: Buffer.from(channel === "v1" ? entryLater(bytes, byMs) : eventLater(bytes, byMs)) };
}

function entryLater(bytes: Buffer, byMs: number): Uint8Array {
  const message = LogEntry.decode(bytes);
  return LogEntry.encode({ ...message, timestamp: later(message.timestamp, byMs) }).finish();
}

function eventLater(bytes: Buffer, byMs: number): Uint8Array {
  const message = Event.decode(bytes);
  return Event.encode({ ...message, timestamp: later(message.timestamp, byMs) }).finish();
}

function later(timestamp: Timestamp | undefined, byMs: number): Timestamp | undefined {
  if (timestamp === undefined) return undefined;
  return timestampOfNanos(nanosOfTimestamp(timestamp) + BigInt(byMs) * 1_000_000n);
}

/** The same process, whose v2 stream breaks after this many messages, as after text that is not UTF-8. */
export function breakingAt(recording: RecordedUpstream, count: number): RecordedUpstream {
  const { v2 } = recording.messages;
  const at = v2[count]?.at ?? 0;
  const message = "grpc: error while marshaling: string field contains invalid UTF-8";
  return {
    ...recording,
    messages: { ...recording.messages, v2: v2.slice(0, count) },
    ends: { ...recording.ends, v2: { at, code: 13, message } },
  };
}
