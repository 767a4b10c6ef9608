import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { ownValue } from "@tapedeck/shared/own-value";

/** A call that was made to the real server, as a gRPC client would make it. */
export type RecordedCall = {
  /** "/proto.SkaffoldService/Execute". */
  readonly method: string;
  readonly request: Buffer;
  /** Ms since 1970. */
  readonly at: number;
  readonly label: string;
  /** Absent: the call ended the process. */
  readonly answer?: { readonly code: number; readonly message: string; readonly response: Buffer };
};

/** A line of calls.ndjson; those made over gRPC have base64 instead of JSON bodies. */
export type CallLine = {
  readonly t: string;
  readonly label: string;
  readonly path: string;
  readonly method?: string;
  readonly requestBody?: string | null;
  readonly requestBase64?: string;
  readonly status?: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly trailers?: unknown;
  readonly bodyBase64?: string;
  readonly error?: { readonly code: string };
};

type HttpCall = { readonly name: string; readonly type: string; readonly wrap?: string };

const httpCalls: Readonly<Record<string, HttpCall>> = {
  "POST /execute": { name: "Execute", type: "UserIntentRequest", wrap: "intent" },
  "PUT /build/auto_execute": { name: "AutoBuild", type: "TriggerRequest", wrap: "state" },
  "PUT /sync/auto_execute": { name: "AutoSync", type: "TriggerRequest", wrap: "state" },
  "PUT /deploy/auto_execute": { name: "AutoDeploy", type: "TriggerRequest", wrap: "state" },
  "POST /events/handle": { name: "Handle", type: "Event" },
};
const packages = {
  v1: { service: "/proto.SkaffoldService/", messages: "proto." },
  v2: { service: "/proto.v2.SkaffoldV2Service/", messages: "proto.v2." },
};

/** Leaves out what exists only over HTTP (bad JSON, unknown paths) and calls of gRPC methods that do not exist. */
export function readCalls(lines: readonly CallLine[]): RecordedCall[] {
  return lines.flatMap((line) => readHttpCall(line) ?? readGrpcCall(line) ?? []);
}

function readHttpCall(line: CallLine): RecordedCall | undefined {
  const [, version, rest] = /^\/(v1|v2)(\/.*)$/.exec(line.path) ?? [];
  const call = ownValue(httpCalls, `${line.method} ${rest}`);
  if (call === undefined || (version !== "v1" && version !== "v2")) return undefined;
  const { service, messages } = packages[version];
  const body = parseBody(line.requestBody ?? "");
  if (body === undefined) return undefined;
  const json = call.wrap === undefined ? body : { [call.wrap]: body };
  const request = encode(`${messages}${call.type}`, json);
  if (request === undefined) return undefined;
  const made = { method: service + call.name, request, at: Date.parse(line.t), label: line.label };
  if (line.error !== undefined) return made;
  if (line.status === 200) return { ...made, answer: { code: 0, message: "", response: Buffer.alloc(0) } };
  const { code, message } = { ...parseBody(line.body ?? "") };
  if (typeof code !== "number" || typeof message !== "string") return undefined;
  return { ...made, answer: { code, message, response: Buffer.alloc(0) } };
}

function readGrpcCall(line: CallLine): RecordedCall | undefined {
  const name = /\/(Execute|Auto\w+|Handle)$/.exec(line.path)?.[1];
  const { requestBase64, headers = {}, bodyBase64 = "" } = line;
  if (name === undefined || requestBase64 === undefined || requestBase64.startsWith("(")) return undefined;
  const code = Number(headers["grpc-status"] ?? 0);
  const message = decodeURIComponent(headers["grpc-message"] ?? "");
  // A gRPC body: one byte of flags and four of length before the message.
  const response = Buffer.from(bodyBase64, "base64").subarray(5);
  const request = Buffer.from(requestBase64, "base64");
  return {
    method: line.path,
    request,
    at: Date.parse(line.t),
    label: line.label,
    answer: { code, message, response: Buffer.from(response) },
  };
}

/** Skaffold takes an empty body for an empty message and reads only the first value; the recordings' other oddities are errors. */
function parseBody(body: string): JsonObject | undefined {
  if (body === "") return {};
  try {
    const json = JSON.parse(body) as JsonValue;
    return typeof json === "object" && json !== null && !Array.isArray(json) ? json : undefined;
  } catch {
    return undefined;
  }
}

function encode(type: string, json: JsonValue): Buffer | undefined {
  try {
    return Buffer.from(fromGatewayJson(messageType(type), json));
  } catch {
    return undefined;
  }
}
