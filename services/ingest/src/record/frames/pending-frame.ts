import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { compareTimestamps } from "@tapedeck/shared/time/timestamp";
import { isLarge } from "../../normalize/mask-thread/thread-masks.ts";
import { shaOf } from "../../normalize/original.ts";
import type { MaskedFrame, Piece } from "../../secrets/pieces.ts";
import type { Fingerprint } from "../own-facts/session-facts.ts";
import { keyedHash } from "./identity.ts";

/** Whether secrets are masked, as `hello` asks. */
export type Redact = "on" | "off";

/** A frame as it would be recorded, and its SHA-256. */
export class HashedFrame implements MaskedFrame {
  readonly bytes: Uint8Array;
  readonly redacted: number;
  readonly piece?: Piece;
  #sha: string | undefined;

  constructor({ bytes, redacted, piece }: MaskedFrame) {
    this.bytes = bytes;
    this.redacted = redacted;
    if (piece !== undefined) this.piece = piece;
  }

  get sha(): string {
    this.#sha ??= shaOf(this.bytes);
    return this.#sha;
  }
}

/** A frame's bytes, and the indexes of the items that brought its pieces. */
export type WholeFrame = { readonly bytes: Uint8Array; readonly indexes: readonly bigint[] };

export type FrameFunctions = {
  readonly mask: (bytes: Uint8Array) => MaskedFrame;
  readonly maskApart?: ((bytes: Uint8Array) => Promise<MaskedFrame>) | undefined;
  readonly timestampOf: (bytes: Uint8Array) => Timestamp | undefined;
  /** For the hash of the bytes before masking; see Original.identity in event.proto. Absent: none is made. */
  readonly identityKey?: Uint8Array | undefined;
};

/** A frame on its way from the tap to the log. Its properties are computed when first used: for most frames, few are. */
export class PendingFrame {
  readonly indexes: readonly bigint[];
  readonly at: Timestamp;
  readonly #bytes: Uint8Array;
  readonly #functions: FrameFunctions;
  #timestamp: { readonly of: Timestamp | undefined } | undefined;
  #rawSha: string | undefined;
  #identity: Buffer | undefined;
  #on: HashedFrame | undefined;
  #off: HashedFrame | undefined;

  constructor({ bytes, indexes }: WholeFrame, at: Timestamp, functions: FrameFunctions) {
    this.indexes = indexes;
    this.at = at;
    this.#bytes = bytes;
    this.#functions = functions;
  }

  get size(): number {
    return this.#bytes.byteLength;
  }

  /** Hash of the bytes before masking, with the source's key; undefined without one. */
  get identity(): Buffer | undefined {
    const { identityKey } = this.#functions;
    if (identityKey === undefined) return undefined;
    this.#identity ??= keyedHash(identityKey, this.#bytes);
    return this.#identity;
  }

  /** The hashes by which the log may know the frame, whatever was masked in it when it was recorded. */
  get rawHashes(): readonly string[] {
    this.#rawSha ??= shaOf(this.#bytes);
    const { identity } = this;
    return identity === undefined ? [this.#rawSha] : [identity.toString("hex"), this.#rawSha];
  }

  /** Another thread masks it. */
  get isLarge(): boolean {
    return isLarge(this.#bytes);
  }

  get timestamp(): Timestamp | undefined {
    this.#timestamp ??= { of: this.#functions.timestampOf(this.#bytes) };
    return this.#timestamp.of;
  }

  /** Await this before `masked`, which takes long for a large frame. */
  async prepare(redact: Redact): Promise<void> {
    const { maskApart } = this.#functions;
    if (redact === "off" || this.#on !== undefined || maskApart === undefined || !isLarge(this.#bytes)) return;
    try {
      this.#on = new HashedFrame(await maskApart(this.#bytes));
    } catch {
      // `masked` then masks it in this thread.
    }
  }

  /** Masks the frame at the first call, and remembers the result. */
  masked(redact: Redact): HashedFrame {
    if (redact === "off") {
      this.#off ??= new HashedFrame({ bytes: this.#bytes, redacted: 0 });
      return this.#off;
    }
    this.#on ??= new HashedFrame(this.#functions.mask(this.#bytes));
    return this.#on;
  }
}

/**
 * The hash of the frame with the smallest own time: of one that masking did not change, if there is one, because that hash
 * needs no key; otherwise its bytes before masking count.
 */
export function fingerprintOf(frames: readonly PendingFrame[], redact: Redact): Fingerprint | undefined {
  const plain = earliest(frames.filter((frame) => frame.masked(redact).redacted === 0));
  if (plain !== undefined) return { at: plain.timestamp, sha: plain.frame.masked(redact).sha };
  const masked = earliest(frames);
  if (masked === undefined) return undefined;
  const { frame, timestamp } = masked;
  return { at: timestamp, sha: frame.identity?.toString("hex") ?? frame.masked(redact).sha };
}

function earliest(
  frames: readonly PendingFrame[],
): { readonly frame: PendingFrame; readonly timestamp: Timestamp } | undefined {
  let smallest: { readonly frame: PendingFrame; readonly timestamp: Timestamp } | undefined;
  for (const frame of frames) {
    const { timestamp } = frame;
    if (timestamp === undefined || (smallest !== undefined && compareTimestamps(smallest.timestamp, timestamp) <= 0))
      continue;
    smallest = { frame, timestamp };
  }
  return smallest;
}
