import type { Event } from "@tapedeck/proto/tapedeck/v1/event";

type Message<M> = { readonly decode: (bytes: Uint8Array) => M };

/** The upstream's message of an event, if it is of that type. Undefined for what is not whole or can't be read. */
export function messageOf<M>({ kind, original }: Event, type: string, message: Message<M>): M | undefined {
  if (original?.type !== type || kind === "upstream.unreadable") return undefined;
  // Larger than the log takes.
  if (BigInt(original.bytes.length) < original.size) return undefined;
  return read(message, original.bytes);
}

export function read<M>(message: Message<M>, bytes: Uint8Array): M | undefined {
  try {
    return message.decode(bytes);
  } catch {
    return undefined;
  }
}
