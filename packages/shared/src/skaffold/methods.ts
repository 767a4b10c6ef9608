import { SkaffoldServiceService } from "@tapedeck/proto/skaffold/v1/skaffold";
import { SkaffoldV2ServiceService } from "@tapedeck/proto/skaffold/v2/skaffold";
import { asBytes } from "../rpc/as-bytes.ts";

/** A method whose messages stay bytes, so that the recording has exactly what Skaffold sent. */
export type RawMethod = {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (bytes: Buffer) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Buffer;
  readonly responseSerialize: (bytes: Buffer) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Buffer;
};

/** The streams of Skaffold, by the names of Tapedeck's channels. */
export const channels = ["v1", "v2", "logs"] as const;
/** The name of a stream of Skaffold. */
export type SkaffoldChannel = (typeof channels)[number];

/** The two APIs of a Skaffold process; each has its own log, state and control calls. */
export const apis = ["v1", "v2"] as const;
/** One of the two APIs of a Skaffold process. */
export type ApiVersion = (typeof apis)[number];

/** The methods of both APIs, with messages as bytes. */
export const services = { v1: rawService(SkaffoldServiceService), v2: rawService(SkaffoldV2ServiceService) };

/** The method that streams a channel. */
export const streamMethods: Readonly<Record<SkaffoldChannel, RawMethod>> = {
  v1: services.v1.events,
  v2: services.v2.events,
  logs: services.v2.applicationLogs,
};

/** Unary calls by full name, "/proto.SkaffoldService/Execute". */
export const unaryMethods: ReadonlyMap<string, RawMethod> = new Map(
  Object.values(services)
    .flatMap((service): RawMethod[] => Object.values(service))
    .filter((method) => !method.requestStream && !method.responseStream)
    .map((method) => [method.path, method]),
);

type MethodShape = { readonly path: string; readonly requestStream: boolean; readonly responseStream: boolean };

function rawService<S extends Readonly<Record<string, MethodShape>>>(
  service: S,
): { readonly [K in keyof S]: RawMethod } {
  const raw = Object.entries(service).map(([name, method]) => [name, rawMethod(method)]);
  return Object.fromEntries(raw) as { readonly [K in keyof S]: RawMethod };
}

function rawMethod({ path, requestStream, responseStream }: MethodShape): RawMethod {
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  };
}
