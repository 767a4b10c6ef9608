import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import type { ApiVersion, SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { readOptionalJsonLines } from "../json-lines.ts";
import { type RecordedCall, readCalls } from "./recording-calls.ts";

/** The events of a real Skaffold process, from a folder of recordings (their README describes the files). */
export type RecordedUpstream = {
  readonly name: string;
  /** "v2.14.2". */
  readonly version: string;
  /** A: Events takes a stream and there is no v2 (up to 0.41); B: no Auto calls (up to 1.10); C: today's. */
  readonly generation: "A" | "B" | "C";
  readonly messages: Readonly<Record<SkaffoldChannel, readonly RecordedMessage[]>>;
  /** Streams that ended with a status of their own; all others were just cut. */
  readonly ends: Readonly<Partial<Record<SkaffoldChannel, RecordedEnd>>>;
  readonly states: readonly RecordedState[];
  /** Control and Handle calls that a gRPC client can make, in recorded order. */
  readonly calls: readonly RecordedCall[];
  readonly timeline: readonly TimelineEntry[];
};

/** `at`: when it was received, ms since 1970. */
export type RecordedMessage = { readonly at: number; readonly bytes: Buffer };

export type RecordedEnd = { readonly at: number; readonly code: number; readonly message: string };

export type RecordedState = {
  readonly api: ApiVersion;
  readonly file: string;
  /** Ms since 1970. */
  readonly at: number;
  /** Events of that API received just before the request and just after the answer; equal in a quiet moment. */
  readonly seenBefore: number;
  readonly seenAfter: number;
  readonly json: JsonValue;
  readonly bytes: Buffer;
};

export type TimelineEntry = {
  readonly at: number;
  readonly what: string;
  readonly seen: Readonly<Record<string, number>>;
};

const messageTypes: Readonly<Record<SkaffoldChannel, string>> = {
  v1: "proto.LogEntry",
  v2: "proto.v2.Event",
  logs: "proto.v2.Event",
};
const stateTypes: Readonly<Record<ApiVersion, string>> = { v1: "proto.State", v2: "proto.v2.State" };

/** Reads a scenario's folder. Where only JSON was recorded the bytes are encoded from it. Throws if a file is broken. */
export function loadRecording(folder: string): RecordedUpstream {
  const version = readVersion(folder);
  const ends = { v1: readEnd(folder, "v1"), v2: readEnd(folder, "v2") };
  return {
    name: basename(folder),
    version,
    generation: generationOf(version),
    messages: {
      v1: readMessages(folder, "v1"),
      v2: readMessages(folder, "v2"),
      logs: readJsonMessages(folder, "v2-applicationLogs", "logs"),
    },
    ends: { ...(ends.v1 && { v1: ends.v1 }), ...(ends.v2 && { v2: ends.v2 }) },
    states: readStates(folder),
    calls: readCalls(readOptionalJsonLines(join(folder, "calls.ndjson"))),
    timeline: readOptionalJsonLines<{ t: string; what: string; seen: Record<string, number> }>(
      join(folder, "timeline.ndjson"),
    ).map(({ t, what, seen }) => ({ at: Date.parse(t), what, seen })),
  };
}

function readVersion(folder: string): string {
  for (const place of [folder, dirname(folder)]) {
    const readme = join(place, "README.md");
    const version = existsSync(readme) ? /Real Skaffold (v[\d.]+)/.exec(readFileSync(readme, "utf8"))?.[1] : undefined;
    if (version !== undefined) return version;
  }
  throw new Error(`${folder}: no README.md says which Skaffold this is`);
}

function generationOf(version: string): RecordedUpstream["generation"] {
  const [major = 0, minor = 0] = version.replace("v", "").split(".").map(Number);
  if (major < 1) return "A";
  return major === 1 && minor < 11 ? "B" : "C";
}

function readMessages(folder: string, api: ApiVersion): RecordedMessage[] {
  const file = join(folder, `grpc-${api}-events.grpc.ndjson`);
  if (!existsSync(file)) return readJsonMessages(folder, `${api}-events`, api);
  return readOptionalJsonLines<{ t: number; b64: string }>(file).map(({ t, b64 }) => ({
    at: t,
    bytes: Buffer.from(b64, "base64"),
  }));
}

function readJsonMessages(folder: string, stem: string, channel: SkaffoldChannel): RecordedMessage[] {
  const file = join(folder, `${stem}.ndjson`);
  if (!existsSync(file)) return [];
  const received = readJson<{ receivedAtMs: number[] }>(join(folder, `${stem}.meta.json`)).receivedAtMs;
  const type = messageType(messageTypes[channel]);
  return readOptionalJsonLines<{ result?: JsonValue }>(file).flatMap(({ result }, line) => {
    const at = received[line];
    if (result === undefined || at === undefined) return [];
    return [{ at, bytes: Buffer.from(fromGatewayJson(type, result)) }];
  });
}

type GrpcMeta = { sessionEvents: { at: string; what: string }[]; trailers?: Record<string, string> };

function readEnd(folder: string, api: ApiVersion): RecordedEnd | undefined {
  const file = join(folder, `grpc-${api}-events.grpc.meta.json`);
  if (!existsSync(file)) return undefined;
  const { trailers, sessionEvents } = readJson<GrpcMeta>(file);
  const at = sessionEvents.find(({ what }) => what === "trailers")?.at;
  if (trailers === undefined || at === undefined) return undefined;
  return { at: Date.parse(at), code: Number(trailers["grpc-status"]), message: trailers["grpc-message"] ?? "" };
}

type StateLine = { file: string; at: string; api: ApiVersion; eventsSeenBefore: number; eventsSeenAfter: number };

function readStates(folder: string): RecordedState[] {
  const index = join(folder, "states.json");
  if (!existsSync(index)) return [];
  return readJson<StateLine[]>(index).map(({ file, at, api, eventsSeenBefore, eventsSeenAfter }) => {
    const json = readJson<JsonValue>(join(folder, file));
    const bytes = Buffer.from(fromGatewayJson(messageType(stateTypes[api]), json));
    return { api, file, at: Date.parse(at), seenBefore: eventsSeenBefore, seenAfter: eventsSeenAfter, json, bytes };
  });
}

/** Every folder below one of recordings that holds an event stream. */
export function recordingFolders(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => /(^|\/)v[12]-events\.ndjson$/.test(file))
    .map((file) => join(root, dirname(file)))
    .filter((folder, index, all) => all.indexOf(folder) === index)
    .sort();
}

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, "utf8")) as T;
}
