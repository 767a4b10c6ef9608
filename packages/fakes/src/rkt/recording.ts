import { basename, join } from "node:path";
import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { ListImagesRequest, ListPodsRequest } from "@tapedeck/proto/rkt/v1alpha/rkt";
import { registry } from "@tapedeck/shared/descriptors/registry";
import { messageFromJson, readOptionalJsonLines } from "../json-lines.ts";

/** The answers of a real rkt api-service, from a folder of recordings (their README describes the files). */
export type RecordedUpstream = {
  readonly name: string;
  /** Calls and steps by rising `n`: the order in which they were over. */
  readonly rows: readonly RecordedRow[];
  /** Lines of expected-events.jsonl as they are; none where there is no such file. */
  readonly expectedEvents: readonly JsonObject[];
};

export type RecordedRow = RecordedStep | RecordedUnary | RecordedStream;

type RowBase = {
  readonly n: number;
  /** When it began, ms since 1970. */
  readonly at: number;
};

/** Something that was done to the host. */
export type RecordedStep = RowBase & { readonly kind: "step"; readonly step: string; readonly fields: JsonObject };

type CallBase = RowBase & { readonly tookMs: number; readonly tag?: string; readonly request: Buffer };

export type RecordedUnary = CallBase & { readonly kind: "unary"; readonly rpc: UnaryRpc } & RecordedAnswer;

/** The result of a unary call: the bytes of the answer, or its error. */
export type RecordedAnswer =
  | { readonly response: Buffer; readonly error?: never }
  | { readonly error: RecordedStatus; readonly response?: never };

export type RecordedStream = CallBase & {
  readonly kind: "stream";
  readonly rpc: StreamRpc;
  readonly messages: readonly RecordedMessage[];
  /** Code 0 where the server ended it well. */
  readonly end: RecordedStatus;
};

/** `afterMs`: since the call began. */
export type RecordedMessage = { readonly afterMs: number; readonly bytes: Buffer };

/** A gRPC status. Texts of codes 1, 4 and 14 are those of the recording client, not the server's. */
export type RecordedStatus = { readonly code: number; readonly details: string };

export const unaryRpcs = ["GetInfo", "ListPods", "InspectPod", "ListImages", "InspectImage"] as const;
export type UnaryRpc = (typeof unaryRpcs)[number];
export const streamRpcs = ["ListenEvents", "GetLogs"] as const;
export type StreamRpc = (typeof streamRpcs)[number];

/** What is polled. */
export type InventoryKind = "pods" | "images";

/**
 * Reads a scenario's folder. Where only JSON was recorded (requests, errors, streams) the bytes are encoded from it.
 * Calls of which the request was not recorded (other methods, broken bytes, other clients) are left out. Throws if a
 * file is broken.
 */
export function loadRecording(folder: string): RecordedUpstream {
  const wire = new Map(
    readOptionalJsonLines<WireLine>(join(folder, "wire.jsonl")).map(({ n, response }) => [
      n,
      Buffer.from(response, "base64"),
    ]),
  );
  return {
    name: basename(folder),
    rows: readOptionalJsonLines<Line>(join(folder, "timeline.jsonl")).flatMap(
      (line) => readRow(line, wire.get(line.n)) ?? [],
    ),
    expectedEvents: readOptionalJsonLines<JsonObject>(join(folder, "expected-events.jsonl")),
  };
}

/**
 * The regular polling of a recording, in order: its ListPods or ListImages calls that are tagged so; where none is, all
 * of them without a filter.
 */
export function pollRows(recording: RecordedUpstream, kind: InventoryKind): RecordedUnary[] {
  const rpc = kind === "pods" ? "ListPods" : "ListImages";
  const all = recording.rows.filter((row) => row.kind === "unary" && row.rpc === rpc) as RecordedUnary[];
  const tagged = all.filter(({ tag }) => tag === "poll");
  return tagged.length > 0 ? tagged : all.filter(({ request }) => filtersIn(kind, request) === 0);
}

function filtersIn(kind: InventoryKind, request: Buffer): number {
  return (kind === "pods" ? ListPodsRequest : ListImagesRequest).decode(request).filters.length;
}

type WireLine = { readonly n: number; readonly response: string };

type Line = {
  readonly at: string;
  readonly n: number;
  readonly step?: string;
  readonly tag?: string;
  readonly rpc?: string;
  readonly took_ms?: number;
  readonly request?: JsonObject;
  readonly response?: JsonObject;
  readonly error?: RecordedStatus;
  readonly status?: { readonly code: number };
  readonly messages?: readonly { readonly after_ms: number; readonly message: JsonObject; readonly wire?: string }[];
};

function readRow(line: Line, wire: Buffer | undefined): RecordedRow | undefined {
  const base = { n: line.n, at: Date.parse(line.at) };
  if (line.step !== undefined) {
    const { at: _, n: __, step, ...fields } = line;
    return { ...base, kind: "step", step, fields: fields as JsonObject };
  }
  const method = publicApi.find(({ name }) => name === line.rpc);
  if (method === undefined || line.request === undefined) return undefined;
  const call = {
    ...base,
    tookMs: line.took_ms ?? 0,
    ...(line.tag !== undefined && { tag: line.tag }),
    request: messageFromJson(method.input, line.request),
  };
  if (method.methodKind === "server_streaming") {
    const messages = (line.messages ?? []).map(({ after_ms, message, wire: bytes }) => ({
      afterMs: after_ms,
      bytes: bytes === undefined ? messageFromJson(method.output, message) : Buffer.from(bytes, "base64"),
    }));
    const end = line.error === undefined ? { code: line.status?.code ?? 0, details: "" } : statusOf(line.error);
    return { ...call, kind: "stream", rpc: method.name as StreamRpc, messages, end };
  }
  const rpc = method.name as UnaryRpc;
  if (line.error !== undefined) return { ...call, kind: "unary", rpc, error: statusOf(line.error) };
  return { ...call, kind: "unary", rpc, response: wire ?? messageFromJson(method.output, line.response ?? {}) };
}

const publicApi: readonly DescMethod[] = registry.getService("v1alpha.PublicAPI")?.methods ?? [];

function statusOf({ code, details }: RecordedStatus): RecordedStatus {
  return { code, details };
}
