import { SkaffoldServiceService } from "@tapedeck/proto/skaffold/v1/skaffold";
import { SkaffoldV2ServiceService } from "@tapedeck/proto/skaffold/v2/skaffold";

/** A method whose messages stay bytes on the way: what Skaffold said is kept and sent on untouched. */
export type RawMethod = {
  readonly path: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (bytes: Buffer) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Buffer;
  readonly responseSerialize: (bytes: Buffer) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Buffer;
};

/** The streams that Skaffold has, by the names of Tapedeck's channels. */
export const channels = ["v1", "v2", "logs"] as const;
export type Channel = (typeof channels)[number];

/** The two APIs of a Skaffold process; each has a log, a state and control calls of its own. */
export const apis = ["v1", "v2"] as const;
export type Api = (typeof apis)[number];

export const services = { v1: rawService(SkaffoldServiceService), v2: rawService(SkaffoldV2ServiceService) };

export const streamMethods: Readonly<Record<Channel, RawMethod>> = {
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

type Described = { readonly path: string; readonly requestStream: boolean; readonly responseStream: boolean };

function rawService<S extends Readonly<Record<string, Described>>>(service: S): { readonly [K in keyof S]: RawMethod } {
  const raw = Object.entries(service).map(([name, method]) => [name, rawMethod(method)]);
  return Object.fromEntries(raw) as { readonly [K in keyof S]: RawMethod };
}

function rawMethod({ path, requestStream, responseStream }: Described): RawMethod {
  const same = (bytes: Buffer) => bytes;
  return {
    path,
    requestStream,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}
