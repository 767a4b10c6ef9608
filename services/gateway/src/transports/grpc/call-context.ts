import type { Metadata } from "@grpc/grpc-js";
import { type AnswerHead, type CallContext, contextNames, headEntries } from "../../call-context.ts";

/** Reads what a call means from its metadata. */
export function contextOf(metadata: Metadata, caller: Pick<CallContext, "workspace" | "who" | "signal">): CallContext {
  const value = (name: string) => {
    const [first] = metadata.get(name);
    return first === undefined ? undefined : String(first);
  };
  const fields = Object.entries(contextNames).flatMap(([field, name]) => {
    const found = value(name);
    return found === undefined || found === "" ? [] : [[field, found] as const];
  });
  return { ...caller, ...Object.fromEntries(fields) };
}

/** Adds the head of an answer to response metadata. */
export function setHead(metadata: Metadata, head: AnswerHead): Metadata {
  for (const [name, value] of headEntries(head)) metadata.set(name, value);
  return metadata;
}
