import { appendFileSync } from "node:fs";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import type { Timestamp } from "@tapedeck/proto/google/protobuf/timestamp";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import type { Api } from "@tapedeck/shared/skaffold/methods";
import type { RecordedMessage, RecordedUpstream } from "./recording.ts";

const types = { v1: messageType("proto.LogEntry"), v2: messageType("proto.v2.Event") };

/** Does what the real Skaffold does at its end: adds v1 to the file, and v2 to the one beside it. */
export function writeEventLog(file: string, said: Readonly<Record<Api, readonly Uint8Array[]>>): void {
  const text = (api: Api) => said[api].map((bytes) => `${eventLogLine(api, bytes)}\n`).join("");
  appendFileSync(file, text("v1"), { mode: 0o600 });
  appendFileSync(`${file}.v2`, text("v2"), { mode: 0o600 });
}

/** In camelCase, without defaults; text that is not UTF-8 has U+FFFD in it. */
export function eventLogLine(api: Api, bytes: Uint8Array): string {
  return JSON.stringify(toJson(types[api], fromBinary(types[api], bytes), { registry }));
}

/** The same process, as if it began now. */
export function asNow(recording: RecordedUpstream): RecordedUpstream {
  const { v1, v2, logs } = recording.messages;
  const byMs = Date.now() - Math.min(...[v1, v2].flatMap(([first]) => (first ? [Math.floor(first.at)] : [])));
  const moved = (messages: readonly RecordedMessage[], stamp: (bytes: Buffer) => Uint8Array) =>
    messages.map(({ at, bytes }) => ({ at: at + byMs, bytes: Buffer.from(stamp(bytes)) }));
  const later = (timestamp: Timestamp | undefined) => {
    if (timestamp === undefined) return undefined;
    const nanos = timestamp.seconds * 1_000_000_000n + BigInt(timestamp.nanos) + BigInt(byMs) * 1_000_000n;
    return { seconds: nanos / 1_000_000_000n, nanos: Number(nanos % 1_000_000_000n) };
  };
  const entry = (bytes: Buffer) => {
    const message = LogEntry.decode(bytes);
    return LogEntry.encode({ ...message, timestamp: later(message.timestamp) }).finish();
  };
  const event = (bytes: Buffer) => {
    const message = Event.decode(bytes);
    return Event.encode({ ...message, timestamp: later(message.timestamp) }).finish();
  };
  return { ...recording, messages: { v1: moved(v1, entry), v2: moved(v2, event), logs: moved(logs, event) } };
}

/** The same, but v2's stream breaks after so many messages, as after text that is not UTF-8. */
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
