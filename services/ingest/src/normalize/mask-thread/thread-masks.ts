import { asBuffer } from "@tapedeck/shared/as-buffer";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { MaskedBytes } from "../../secrets/mask-bytes.ts";
import type { Piece } from "../../secrets/pieces.ts";
import type { MaskResult } from "./mask-tasks.ts";
import { MaskThread } from "./mask-thread.ts";

/** A smaller message is masked in a few milliseconds. */
const largeMessage = 48 * 1024;

const thread = new MaskThread();

export function isLarge(message: Uint8Array): boolean {
  return message.byteLength >= largeMessage;
}

type Mask = (name: string, bytes: Uint8Array) => MaskedBytes;

/** The masks of an upstream, run in another thread. All of them reject if that fails. */
export type ThreadMasks = {
  readonly mask: (channel: string, bytes: Uint8Array) => Promise<MaskedBytes & { readonly piece?: Piece }>;
  readonly maskAfter: (
    channel: string,
    bytes: Uint8Array,
    tail: string,
  ) => Promise<MaskedBytes & { readonly text: string }>;
};

export function threadMasks(upstream: UpstreamName): ThreadMasks {
  return {
    async mask(channel, bytes) {
      const done = await thread.run({ what: "frame", upstream, channel, bytes });
      return { ...masked(done, bytes), ...(done.piece !== undefined && { piece: done.piece }) };
    },
    async maskAfter(channel, bytes, tail) {
      const done = await thread.run({ what: "after", upstream, channel, bytes, tail });
      return { ...masked(done, bytes), text: done.text ?? "" };
    },
  };
}

function masked({ bytes, redacted }: MaskResult, before: Uint8Array): MaskedBytes {
  return { bytes: bytes ?? before, redacted };
}

/** Masks an observation's entries in another thread. Gives a mask that knows them, and asks `otherwise` for all others. */
export function maskEntriesInThread(upstream: UpstreamName, otherwise: Mask) {
  return async (channel: string, observation: Uint8Array): Promise<Mask> => {
    const { bytes, entries } = await thread.run({ what: "observation", upstream, channel, bytes: observation });
    if (bytes === undefined || entries === undefined) return otherwise;
    const raw = Buffer.from(entries.raw.buffer);
    const known = new Map<string, MaskedBytes>();
    const yieldIfDue = yieldToEventLoop();
    let start = 0;
    for (const [index, length] of entries.lengths.entries()) {
      const end = start + length;
      const redacted = entries.redacted[index] ?? 0;
      const key = `${entries.types[index]} ${raw.toString("latin1", start, end)}`;
      known.set(key, { bytes: bytes.subarray(start, end), redacted });
      start = end;
      await yieldIfDue();
    }
    return (type, bytes) => {
      const found = known.get(`${type} ${asBuffer(bytes).toString("latin1")}`);
      if (found === undefined) return otherwise(type, bytes);
      // A copy, which does not keep the whole observation alive.
      return found.redacted === 0 ? { bytes: bytes, redacted: 0 } : { ...found, bytes: Buffer.from(found.bytes) };
    };
  };
}
