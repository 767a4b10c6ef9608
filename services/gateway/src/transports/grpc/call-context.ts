import type { Metadata } from "@grpc/grpc-js";
import {
  type AnswerHead,
  type CallContext,
  type Caller,
  contextNames,
  headEntries,
  whileLetIn,
} from "../../call-context.ts";

/** What every kind of call offers. */
export type GrpcCall = {
  readonly metadata: Metadata;
  readonly cancelled: boolean;
  getPeer(): string;
  once(event: "cancelled", listener: () => void): unknown;
};

export type GrpcCaller = (call: GrpcCall) => Caller;

/** Reads what a call means from its metadata. */
export function contextOf(metadata: Metadata, caller: Caller & Pick<CallContext, "signal">): CallContext {
  const fields = Object.entries(contextNames).flatMap(([field, name]) => {
    const [found] = metadata.get(name);
    return found === undefined || found === "" ? [] : [[field, String(found)] as const];
  });
  return { ...caller, signal: whileLetIn(caller.signal, caller), ...Object.fromEntries(fields) };
}

/** Adds the head of an answer to response metadata. */
export function setHead(metadata: Metadata, head: AnswerHead): Metadata {
  for (const [name, value] of headEntries(head)) metadata.set(name, value);
  return metadata;
}
