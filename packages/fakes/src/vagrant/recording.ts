import { basename } from "node:path";
import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { registry } from "@tapedeck/shared/descriptors/registry";
import { ownValue } from "@tapedeck/shared/own-value";
import { messageFromJson, readJsonLines, readOptionalJsonLines } from "../json-lines.ts";

/** The answers of a real Vagrant server, from a file of samples (the README beside them describes the lines). */
export type RecordedUpstream = {
  readonly name: string;
  /** The file's description of itself. */
  readonly about: readonly string[];
  /** Calls and messages in the order in which they were over. */
  readonly rows: readonly RecordedRow[];
};

export type RecordedRow = RecordedUnary | RecordedOpening | RecordedMessage | RecordedEnd;

type RowBase = {
  readonly n: number;
  /** Ms since the recording began. */
  readonly atMs: number;
  /** `cli` and `runner` are Vagrant's own, `recorder` observes. */
  readonly actor: Actor;
  /** The name as on the wire: "_ListJobs". */
  readonly rpc: string;
  readonly note?: string;
};

export type Actor = "cli" | "runner" | "recorder";

export type RecordedUnary = RowBase & { readonly kind: "unary"; readonly request: Buffer } & RecordedAnswer;

/** The result of a unary call: the bytes of the answer, or its error. */
export type RecordedAnswer =
  | { readonly response: Buffer; readonly error?: never }
  | { readonly error: RecordedStatus; readonly response?: never };

/** `stream` names one stream among the rows of a recording. */
type StreamBase = RowBase & { readonly stream: string };

export type RecordedOpening = StreamBase & { readonly kind: "stream-open"; readonly request: Buffer };

/** From the client (`stream-send`) or to it. */
export type RecordedMessage = StreamBase & {
  readonly kind: "stream-send" | "stream-message";
  readonly message: Buffer;
};

export type RecordedEnd = StreamBase & { readonly kind: "stream-end"; readonly end: RecordedStatus };

/** A gRPC status; code 0 where a stream ended well. */
export type RecordedStatus = { readonly code: number; readonly details: string };

/** Reads `<name>.jsonl`, with the bytes of `<name>.wire.jsonl` where there are any. Throws if a file is broken. */
export function loadRecording(file: string): RecordedUpstream {
  const lines = readJsonLines<Line>(file);
  const wireFile = file.replace(/\.jsonl$/, ".wire.jsonl");
  const wireLines = readOptionalJsonLines<WireLine>(wireFile);
  const wire = new Map(wireLines.map(({ n, b64 }) => [n, Buffer.from(b64, "base64")]));
  return {
    name: basename(file, ".jsonl"),
    about: lines.flatMap(({ actor, note }) => (actor === "meta" && note !== undefined ? [note] : [])),
    rows: lines.flatMap((line) => (line.actor === "meta" ? [] : [readRow(line, line.actor, wire.get(line.n))])),
  };
}

type WireLine = { readonly n: number; readonly b64: string };

type Line = {
  readonly n: number;
  readonly t_ms: number;
  readonly actor: Actor | "meta";
  readonly rpc?: string;
  readonly stream?: string;
  readonly kind: string;
  readonly request?: JsonObject;
  readonly message?: JsonObject;
  readonly error?: string | { readonly code: string; readonly message: string };
  readonly note?: string;
};

function readRow(line: Line, actor: Actor, bytes: Buffer | undefined): RecordedRow {
  const method = methods.find(({ name }) => name === line.rpc);
  if (method === undefined) throw new Error(`line ${line.n} calls ${line.rpc}`);
  const { n, t_ms: atMs, kind, note, stream = "", request = {}, message = {}, error } = line;
  const base = { n, atMs, actor, rpc: method.name, ...(note !== undefined && { note }) };
  const answered = () => bytes ?? messageFromJson(method.output, message);
  switch (kind) {
    case "unary": {
      const call = { ...base, kind, request: messageFromJson(method.input, request) } as const;
      return error === undefined ? { ...call, response: answered() } : { ...call, error: statusOf(error) };
    }
    case "stream-open":
      return { ...base, kind, stream, request: messageFromJson(method.input, request) };
    case "stream-send":
      return { ...base, kind, stream, message: messageFromJson(method.input, message) };
    case "stream-message":
      return { ...base, kind, stream, message: answered() };
    case "stream-end":
      return { ...base, kind, stream, end: statusOf(error ?? "EOF") };
    default:
      throw new Error(`line ${n} is of the unknown kind ${kind}`);
  }
}

const methods: readonly DescMethod[] = registry.getService("hashicorp.vagrant.Vagrant")?.methods ?? [];

/** The names that Go has for codes, as far as the samples need them. */
const codes: Readonly<Record<string, number>> = { Canceled: 1, NotFound: 5 };

function statusOf(error: NonNullable<Line["error"]>): RecordedStatus {
  if (error === "EOF") return { code: 0, details: "" };
  const { code: name, message } = typeof error === "string" ? { code: error, message: "" } : error;
  const code = ownValue(codes, name);
  if (code === undefined) throw new Error(`unknown code ${name}`);
  return { code, details: message };
}
