import { Look } from "@tapedeck/proto/tapedeck/v1/look";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { masks } from "../../normalize/masks.ts";
import type { Piece } from "../pieces.ts";

export type MaskTask = {
  readonly what: "frame" | "after" | "look";
  readonly upstream: UpstreamName;
  readonly channel: string;
  readonly bytes: Uint8Array;
  /** Of `after`. */
  readonly tail?: string;
};

export type MaskResult = {
  /** Of a frame: absent where nothing was masked. Of a look: its entries, one after the other. */
  readonly bytes?: Uint8Array;
  readonly redacted: number;
  readonly piece?: Piece;
  /** What was printed, as masked after the tail. */
  readonly text?: string;
  readonly entries?: MaskedEntries;
};

/** What was masked of a look: entry by entry. */
export type MaskedEntries = {
  readonly types: readonly string[];
  /** As they were given, one after the other. */
  readonly raw: Uint8Array;
  readonly lengths: Uint32Array;
  readonly redacted: Uint32Array;
};

/** Pure. Throws for looks that can't be read. */
export function perform(task: MaskTask): MaskResult {
  const { upstream, channel, bytes } = task;
  const { mask, maskAfter } = masks[upstream];
  if (task.what === "look") return performLook(task);
  if (task.what === "frame") {
    const { piece, ...masked } = mask(channel, bytes);
    return { ...changed(masked, bytes), ...(piece !== undefined && { piece }) };
  }
  const masked = maskAfter?.(channel, bytes, task.tail ?? "") ?? { bytes, redacted: 0, text: "" };
  return { ...changed(masked, bytes), text: masked.text };
}

type Masked = { readonly bytes: Uint8Array; readonly redacted: number };

function changed({ bytes, redacted }: Masked, before: Uint8Array): MaskResult {
  return { redacted, ...(bytes !== before && { bytes: new Uint8Array(bytes) }) };
}

function performLook({ upstream, channel, bytes }: MaskTask): MaskResult {
  const { mask, entriesOf = () => [] } = masks[upstream];
  const entries = entriesOf(channel, Look.decode(bytes));
  const masked = entries.map((entry) => mask(entry.type, entry.bytes));
  return {
    redacted: 0,
    bytes: new Uint8Array(Buffer.concat(masked.map((one) => one.bytes))),
    entries: {
      types: entries.map(({ type }) => type),
      raw: new Uint8Array(Buffer.concat(entries.map((one) => one.bytes))),
      lengths: Uint32Array.from(entries, (one) => one.bytes.byteLength),
      redacted: Uint32Array.from(masked, ({ redacted }) => redacted),
    },
  };
}
