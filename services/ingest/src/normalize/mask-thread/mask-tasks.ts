import { Observation } from "@tapedeck/proto/tapedeck/v1/observation";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { MaskedBytes } from "../../secrets/mask-bytes.ts";
import type { Piece } from "../../secrets/pieces.ts";
import { masks } from "../masks.ts";

export type MaskTask = {
  readonly what: "frame" | "after" | "observation";
  readonly upstream: UpstreamName;
  readonly channel: string;
  readonly bytes: Uint8Array;
  /** For `after`. */
  readonly tail?: string;
};

export type MaskResult = {
  /** For a frame: absent if nothing was masked. For an observation: its masked entries, one after the other. */
  readonly bytes?: Uint8Array;
  readonly redacted: number;
  readonly piece?: Piece;
  /** The output, as masked after the tail. */
  readonly text?: string;
  readonly entries?: MaskedEntries;
};

/** The masked entries of an observation. */
export type MaskedEntries = {
  readonly types: readonly string[];
  /** The entries as they came, one after the other. */
  readonly raw: Uint8Array;
  readonly lengths: Uint32Array;
  readonly redacted: Uint32Array;
};

/** Pure. Throws for observations that can't be read. */
export function perform(task: MaskTask): MaskResult {
  const { upstream, channel, bytes } = task;
  const { mask, maskAfter } = masks[upstream];
  if (task.what === "observation") return maskObservation(task);
  if (task.what === "frame") {
    const { piece, ...masked } = mask(channel, bytes);
    return { ...changed(masked, bytes), ...(piece !== undefined && { piece }) };
  }
  const masked = maskAfter?.(channel, bytes, task.tail ?? "") ?? { bytes, redacted: 0, text: "" };
  return { ...changed(masked, bytes), text: masked.text };
}

function changed({ bytes, redacted }: MaskedBytes, before: Uint8Array): MaskResult {
  return { redacted, ...(bytes !== before && { bytes: new Uint8Array(bytes) }) };
}

function maskObservation({ upstream, channel, bytes }: MaskTask): MaskResult {
  const { mask, entriesOf = () => [] } = masks[upstream];
  const entries = entriesOf(channel, Observation.decode(bytes));
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
