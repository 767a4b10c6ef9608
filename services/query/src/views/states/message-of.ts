import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

type MessageType<M> = { readonly decode: (bytes: Uint8Array) => M };

/** The upstream's message of an event, if it is of that type. Undefined for one that is incomplete or can't be decoded. */
export function messageOf<M>({ kind, original }: Event, name: string, type: MessageType<M>): M | undefined {
  if (original?.type !== name || kind === "upstream.unreadable") return undefined;
  // The log does not hold messages beyond its size limit in full.
  if (BigInt(original.bytes.length) < original.size) return undefined;
  return decoded(type, original.bytes);
}

export function decoded<M>(type: MessageType<M>, bytes: Uint8Array): M | undefined {
  try {
    return type.decode(bytes);
  } catch {
    return undefined;
  }
}
