import type { Metadata } from "@grpc/grpc-js";
import {
  type AnswerHead,
  type CallContext,
  type Caller,
  contextNames,
  headEntries,
  sourceOfHeader,
  whileAuthorized,
} from "../../call-context.ts";

/** The part that every kind of grpc-js call has. */
export type GrpcCall = {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  getPeer(): string;
  once(event: "cancelled", listener: () => void): unknown;
};

export type GrpcCaller = (call: GrpcCall) => Caller;

/** The context of a call, from its metadata. */
export function contextOf(metadata: Metadata, caller: Caller & Pick<CallContext, "signal">): CallContext {
  const fields = Object.entries(contextNames).flatMap(([field, name]) => {
    const [found] = metadata.get(name);
    if (found === undefined || found === "") return [];
    return [[field, field === "source" ? sourceOfHeader(String(found)) : String(found)] as const];
  });
  return { ...caller, signal: whileAuthorized(caller.signal, caller), ...Object.fromEntries(fields) };
}

/** Adds the head of an answer to response metadata. */
export function setHead(metadata: Metadata, head: AnswerHead): Metadata {
  for (const [name, value] of headEntries(head)) metadata.set(name, value);
  return metadata;
}
