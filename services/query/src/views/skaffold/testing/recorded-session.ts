import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { LogEntry, TriggerRequest, UserIntentRequest } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event as V2Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { ControlDetail, Event, Original, SessionDetail } from "@tapedeck/proto/tapedeck/v1/event";
import { fromGatewayJson, withDefaults } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";

/** A recording of a real process (its README describes the files) as the events that Tapedeck would have recorded. */
export type RecordedSession = {
  readonly name: string;
  /** The upstream's first answers that have flags. */
  readonly described: Event;
  readonly v1: readonly Event[];
  readonly v2: readonly Event[];
  readonly calls: readonly RecordedCall[];
  readonly states: readonly RecordedAnswer[];
};

export type Api = "v1" | "v2";

/** Counts of the events that had been received by then. */
type EventCounts = Readonly<Record<Api, number>>;

export type RecordedCall = {
  readonly at: number;
  readonly requested: Event;
  readonly answered: Event;
  readonly before: EventCounts;
  readonly after: EventCounts;
};

/** What GetState said in a quiet moment, in the form of `toGatewayJson`. */
export type RecordedAnswer = {
  readonly file: string;
  readonly api: Api;
  readonly at: number;
  readonly seen: number;
  readonly json: JsonObject;
};

export const stateTypes = { v1: messageType("proto.State"), v2: messageType("proto.v2.State") } as const;
const eventTypes = { v1: messageType("proto.LogEntry"), v2: messageType("proto.v2.Event") } as const;
const fixtures = new URL("../../../../../../packages/fakes/recordings/skaffold/", import.meta.url);

/** Every folder of the recordings that has event streams, by name. */
export function recordingNames(): readonly string[] {
  const files = readdirSync(fixtures, { recursive: true, encoding: "utf8" });
  const folders = files
    .filter((file) => /(^|\/)(grpc-)?v[12]-events(\.grpc)?\.ndjson$/.test(file))
    .map((file) => file.slice(0, file.lastIndexOf("/")));
  return [...new Set(folders)].sort();
}

export function recordedSession(name: string): RecordedSession {
  const folder = new URL(`${name}/`, fixtures);
  const recordedCalls = lines<CallLine>(folder, "calls.ndjson");
  const states = recordedStates(folder);
  return {
    name,
    described: describedBy(states),
    v1: channel(folder, "v1", recordedCalls),
    v2: channel(folder, "v2", recordedCalls),
    calls: recordedCalls.flatMap((line, index) => controlCall(line, `${index}`)),
    states,
  };
}

function channel(folder: URL, api: Api, calls: readonly CallLine[]): readonly Event[] {
  const injectedAt = new Set(
    calls
      .filter((line) => line.path === `/${api}/events/handle` && line.status === 200)
      .map((line) => seen(line.seenBefore)[api]),
  );
  return frames(folder, api).map((bytes, index) => eventOf(api, bytes, { injected: injectedAt.has(index) }));
}

function frames(folder: URL, api: Api): readonly Uint8Array[] {
  const overGrpc = lines<{ b64: string }>(folder, `grpc-${api}-events.grpc.ndjson`);
  if (overGrpc.length > 0) return overGrpc.map(({ b64 }) => Buffer.from(b64, "base64"));
  const overHttp = lines<{ result?: JsonValue }>(folder, `${api}-events.ndjson`);
  return overHttp.flatMap(({ result }) => (result ? [fromGatewayJson(eventTypes[api], result)] : []));
}

/** A recorded frame, without what the fold does not read. */
export function eventOf(api: Api, frame: Uint8Array, fields: Partial<Event> = {}): Event {
  const bytes = Buffer.from(frame);
  const original = Original.create({ type: eventTypes[api].typeName, bytes, size: BigInt(bytes.length) });
  const { timestamp } = api === "v1" ? LogEntry.decode(bytes) : V2Event.decode(bytes);
  return { ...Event.create({ channel: api }), occurred_at: timestamp, original, ...fields };
}

export function describedAs(states: Readonly<Partial<Record<Api, Uint8Array>>>): Event {
  const value = { ...SessionDetail.create(), states: mapBuffers(states) };
  return {
    ...Event.create({ channel: "tapedeck", kind: "session.described" }),
    detail: { $case: "session_detail", value },
  };
}

export function controlEvent(kind: "requested" | "accepted" | "rejected", detail: Partial<ControlDetail>): Event {
  const value = { ...ControlDetail.create(), ...detail };
  return { ...Event.create({ channel: "tapedeck", kind: `control.${kind}` }), detail: { $case: "control", value } };
}

function describedBy(states: readonly RecordedAnswer[]): Event {
  const first = (api: Api) => {
    const answer = states.find((state) => state.api === api && state.json.buildState !== null);
    return answer ? { [api]: fromGatewayJson(stateTypes[api], answer.json) } : {};
  };
  return describedAs({ ...first("v1"), ...first("v2") });
}

function mapBuffers(table: Readonly<Record<string, Uint8Array>>): { [name: string]: Buffer } {
  return Object.fromEntries(Object.entries(table).map(([name, bytes]) => [name, Buffer.from(bytes)]));
}

type StateLine = {
  readonly file: string;
  readonly api: Api;
  readonly at: string;
  readonly status: number;
  readonly eventsSeenBefore: number;
  readonly eventsSeenAfter: number;
};

function recordedStates(folder: URL): readonly RecordedAnswer[] {
  if (!existsSync(new URL("states.json", folder))) return [];
  const listed = JSON.parse(readFileSync(new URL("states.json", folder), "utf8")) as StateLine[];
  return listed
    .filter((line) => line.status === 200 && line.eventsSeenBefore === line.eventsSeenAfter)
    .map(({ file, api, at, eventsSeenAfter }) => {
      const json = JSON.parse(readFileSync(new URL(file, folder), "utf8")) as JsonObject;
      return { file, api, at: Date.parse(at), seen: eventsSeenAfter, json: withDefaults(stateTypes[api], json) };
    });
}

type CallLine = {
  readonly t: string;
  readonly path: string;
  readonly requestBody: string | null;
  readonly status: number | null;
  readonly seenBefore: Readonly<Record<string, number>>;
  readonly seenAfter: Readonly<Record<string, number>>;
};

const methods: Readonly<Record<string, string>> = {
  "/v1/execute": "Execute",
  "/v1/build/auto_execute": "AutoBuild",
  "/v1/sync/auto_execute": "AutoSync",
  "/v1/deploy/auto_execute": "AutoDeploy",
};

/** v1's calls only: those of v2 act here and did not there. */
function controlCall(line: CallLine, call: string): readonly RecordedCall[] {
  const name = methods[line.path];
  if (name === undefined || (line.status !== 200 && line.status !== 409)) return [];
  const method = `/proto.SkaffoldService/${name}`;
  const detail = { call, method, request: requestOf(name, line.requestBody), forwarded_method: method };
  const sent = { ...detail, forwarded_request: detail.request };
  return [
    {
      at: Date.parse(line.t),
      requested: controlEvent("requested", sent),
      answered: controlEvent(line.status === 200 ? "accepted" : "rejected", sent),
      before: seen(line.seenBefore),
      after: seen(line.seenAfter),
    },
  ];
}

function requestOf(name: string, body: string | null): Buffer {
  // Only the first JSON value of a body counts; there is one body with two of them.
  const json = JSON.parse(body?.replace(/\}\{.*$/, "}") || "{}") as { enabled?: boolean };
  const bytes =
    name === "Execute"
      ? UserIntentRequest.encode(UserIntentRequest.fromJSON({ intent: json }))
      : TriggerRequest.encode(TriggerRequest.fromJSON({ state: json }));
  return Buffer.from(bytes.finish());
}

/** The readers of HTTP and gRPC were not equally fast. */
function seen(counts: Readonly<Record<string, number>>): EventCounts {
  const max = (api: Api) => Math.max(counts[`${api}-events`] ?? 0, counts[`grpc-${api}-events`] ?? 0);
  return { v1: max("v1"), v2: max("v2") };
}

function lines<T>(folder: URL, file: string): T[] {
  const url = new URL(file, folder);
  if (!existsSync(url)) return [];
  return readFileSync(url, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}
