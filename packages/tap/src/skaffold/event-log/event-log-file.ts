import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { isJsonObject } from "@tapedeck/shared/descriptors/json-object";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampOf } from "../frame-timestamp.ts";
import { frameTypes } from "./frame-types.ts";

/** One message, encoded as Skaffold would have sent it over gRPC. */
export type ImportedFrame = {
  readonly channel: SkaffoldChannel;
  /** Not masked. */
  readonly bytes: Uint8Array;
  readonly timestamp: Timestamp;
};

/** A line that was skipped; `line` counts from 1. */
export type SkippedLine = { readonly file: string; readonly line: number; readonly problem: string };

/** The lines of an event log file. */
export type EventLogLines = { readonly file: string; readonly lines: AsyncIterable<string> | Iterable<string> };

/**
 * Reads the files of `--event-log-file` (docs/upstreams/skaffold.md#event-log-file: F for v1, F.v2 for v2) or the output of Skaffold's HTTP streams, of any version:
 * one JSON message per line, alone or as `{"result": …}`, with names in either dialect, with or without defaults. Frames
 * come in the order of the lines, several runs one after the other. Each line shows which API it belongs to.
 *
 * A field known to both sides gets the very bytes that Skaffold sends. A frame therefore equals the recorded one, except
 * for what JSON does not carry: fields, event types and names of codes newer than the descriptors; text that is not UTF-8;
 * the order in which Go wrote a map of several entries (debug ports). `sameFrameKey` ignores the last two.
 */
export async function readEventLog({ file, lines }: EventLogLines): Promise<{
  readonly frames: readonly ImportedFrame[];
  readonly problems: readonly SkippedLine[];
}> {
  const frames: ImportedFrame[] = [];
  const skipped: SkippedLine[] = [];
  let line = 0;
  for await (const text of lines) {
    line += 1;
    const json = text.replace(/^\uFEFF/, "").trim();
    if (json === "") continue;
    const frame = readEventLogLine(json);
    if (typeof frame === "string") skipped.push({ file, line, problem: frame });
    else frames.push(frame);
  }
  return { frames, problems: skipped };
}

/** A frame, or what is wrong with the line. */
export function readEventLogLine(text: string): ImportedFrame | string {
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch {
    return text.startsWith("{") ? "not JSON, or truncated" : "not JSON";
  }
  if (!isJsonObject(json)) return "not a message of Skaffold's event log";
  if (isJsonObject(json.error))
    return `the stream ended here: ${String(json.error.message)} (code ${String(json.error.code)})`;
  const message = json.result ?? json;
  if (!isJsonObject(message)) return "not a message of Skaffold's event log";
  return encode(channelOf(message), message);
}

function channelOf(message: JsonObject): SkaffoldChannel {
  if ("event" in message || "entry" in message) return "v1";
  return "applicationLogEvent" in message ? "logs" : "v2";
}

function encode(channel: SkaffoldChannel, message: JsonObject): ImportedFrame | string {
  try {
    const bytes = fromGatewayJson(frameTypes[channel], message);
    const timestamp = timestampOf(bytes);
    return timestamp === undefined
      ? "no timestamp, so no message of Skaffold's event log"
      : { channel, bytes, timestamp };
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause);
  }
}
