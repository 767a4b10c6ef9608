import { mapStringFields } from "@tapedeck/shared/descriptors/mask-strings";
import { maskContinued } from "../../../secrets/continued-text.ts";
import { Tails } from "../../../secrets/pieces.ts";
import type { WatchOptions } from "../../inventory/observing.ts";
import { types } from "../mask.ts";

export const eventType = "hashicorp.vagrant.GetJobStreamResponse.Terminal.Event";
const printed = /^(?:raw\.data|line\.msg)$/;

/** An event of the output, already masked, after the tail of the one before it. */
export const maskAfter: NonNullable<WatchOptions["maskAfter"]> = (type, bytes, tail) => {
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
  /** As it is masked after nothing; absent: the same. */
  readonly alone?: Uint8Array;
};

export type OutputPieces = {
  /** Events of a stream that come after so many others of it, masked. */
  readonly mask: (stream: string, before: number, events: readonly Uint8Array[]) => readonly MaskedEvent[];
  /** An event read back from the log, which a stream gave at this place. */
  readonly recorded: (stream: string, offset: number, event: Uint8Array) => void;
};

/**
 * Masks the events of a job's output, with secrets that are cut by where a piece ends. A piece is masked after those
 * before it in its window, however it is given, because a replay begins with a window.
 */
export function outputPieces({ mask, maskAfter: maskTail }: OutputMasks, windowSize: number): OutputPieces {
  const tails = new Tails();
  let last = { stream: "", next: 0 };

  function masked(event: Uint8Array): MaskedEvent {
    const alone = mask(eventType, event);
    if (maskTail === undefined) return alone;
    const text = textOf(alone.bytes);
    if (text === undefined) return alone;
    const tail = tails.before("");
    if (tail === "") {
      tails.took({ stream: "", text });
      return alone;
    }
    const after = maskTail(eventType, alone.bytes, tail);
    tails.took({ stream: "", text: textOf(after.bytes) ?? "" });
    if (after.redacted === 0) return alone;
    return { bytes: after.bytes, redacted: alone.redacted + after.redacted, alone: alone.bytes };
  }

  function goOn(stream: string, before: number, count: number): void {
    if (last.stream !== stream || last.next !== before) tails.reset();
    last = { stream, next: before + count };
  }

  return {
    recorded(stream, offset, event) {
      goOn(stream, offset, 1);
      if (offset % windowSize === 0) tails.reset();
      const text = textOf(event);
      if (text !== undefined) tails.took({ stream: "", text });
    },
    mask(stream, before, events) {
      goOn(stream, before, events.length);
      return events.map((event, index) => {
        if ((before + index) % windowSize === 0) tails.reset();
        return masked(event);
      });
    },
  };
}

export type OutputMasks = Pick<WatchOptions, "mask" | "maskAfter">;

/** With the end that a line has; undefined: it printed nothing. */
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
