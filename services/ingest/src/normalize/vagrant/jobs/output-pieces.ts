import { hash } from "node:crypto";
import { maskContinued } from "../../../secrets/continued-text.ts";
import { Tails } from "../../../secrets/pieces.ts";
import type { WatcherOptions } from "../../inventory/observing.ts";
import { mapStringFields } from "../../mask-strings.ts";
import { types } from "../mask.ts";

export const eventType = "hashicorp.vagrant.GetJobStreamResponse.Terminal.Event";
const printed = /^(?:raw\.data|line\.msg)$/;

/** Masks an event of the output, already masked alone, after the tail of the event before it. */
export const maskAfter: NonNullable<WatcherOptions["maskAfter"]> = (type, bytes, tail) => {
  const described = types.getMessage(type);
  let redacted = 0;
  if (type !== eventType || described === undefined) return { bytes, redacted };
  const mapped = mapStringFields(described, bytes, (text, path) => {
    if (!printed.test(path)) return undefined;
    const masked = maskContinued(tail, text);
    redacted += masked.secrets;
    return masked.text;
  });
  return { bytes: mapped.bytes, redacted };
};

export type MaskedEvent = {
  readonly bytes: Uint8Array;
  readonly redacted: number;
  /** The piece as it is masked without an event before it; absent: the same. */
  readonly alone?: Uint8Array;
  /** Keyed hash of the piece before masking; see Original.identity in event.proto. Absent: masking did not change it. */
  readonly identity?: Buffer | undefined;
  /** The hashes by which it may have been recorded, whatever was masked in it then. */
  readonly rawHashes?: () => readonly Uint8Array[];
};

export type OutputMasks = Pick<WatcherOptions, "mask" | "maskAfter" | "identityOf">;

/**
 * Masks the events of a job's output, with secrets that are cut by the end of a piece. A piece is masked after those
 * before it in its window, whichever way it is streamed, because a replay begins with a window.
 */
export class OutputPieces {
  readonly #masks: OutputMasks;
  readonly #windowSize: number;
  readonly #tails = new Tails();
  #last = { stream: "", next: 0 };

  constructor(masks: OutputMasks, windowSize: number) {
    this.#masks = masks;
    this.#windowSize = windowSize;
  }

  /** Masks events that the stream gives after `before` others. */
  mask(stream: string, before: number, events: readonly Uint8Array[]): readonly MaskedEvent[] {
    this.#continue(stream, before, events.length);
    return events.map((event, index) => {
      if ((before + index) % this.#windowSize === 0) this.#tails.reset();
      return this.#identified(event);
    });
  }

  #identified(event: Uint8Array): MaskedEvent {
    const { identityOf } = this.#masks;
    const masked = this.#masked(event);
    if (identityOf === undefined) return masked;
    const rawHashes = () => [identityOf(event), hash("sha256", event, "buffer")];
    return { ...masked, rawHashes, ...(masked.redacted > 0 && { identity: identityOf(event) }) };
  }

  /** Takes in an event read back from the log, and its position in its stream. */
  recorded(stream: string, offset: number, event: Uint8Array): void {
    this.#continue(stream, offset, 1);
    if (offset % this.#windowSize === 0) this.#tails.reset();
    const text = textOf(event);
    if (text !== undefined) this.#tails.took({ stream: "", text });
  }

  #masked(event: Uint8Array): MaskedEvent {
    const { mask, maskAfter: maskTail } = this.#masks;
    const alone = mask(eventType, event);
    if (maskTail === undefined) return alone;
    const text = textOf(alone.bytes);
    if (text === undefined) return alone;
    const tail = this.#tails.before("");
    if (tail === "") {
      this.#tails.took({ stream: "", text });
      return alone;
    }
    const after = maskTail(eventType, alone.bytes, tail);
    this.#tails.took({ stream: "", text: textOf(after.bytes) ?? "" });
    if (after.redacted === 0) return alone;
    return { bytes: after.bytes, redacted: alone.redacted + after.redacted, alone: alone.bytes };
  }

  #continue(stream: string, before: number, count: number): void {
    if (this.#last.stream !== stream || this.#last.next !== before) this.#tails.reset();
    this.#last = { stream, next: before + count };
  }
}

/** The printed text with the end that a line has; undefined: the event prints nothing. */
function textOf(event: Uint8Array): string | undefined {
  let text: string | undefined;
  const described = types.getMessage(eventType);
  if (described === undefined) return undefined;
  mapStringFields(described, event, (one, path) => {
    if (printed.test(path)) text = path === "line.msg" ? `${one}\n` : one;
    return undefined;
  });
  return text;
}
