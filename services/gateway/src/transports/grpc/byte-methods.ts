import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

const asIs = (bytes: Buffer) => bytes;

/** Messages as they are on the wire. */
export const asBytes = {
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
} as const;

type Method = Pick<MethodDefinition<unknown, unknown>, "path" | "requestStream" | "responseStream">;

/** A generated service whose handlers get and give bytes: the upstream's bytes are not encoded again. */
export function byteMethods(methods: Readonly<Record<string, Method>>): ServiceDefinition {
  return Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, { ...method, ...asBytes }]));
}
