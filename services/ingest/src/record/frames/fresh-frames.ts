import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import { isLarge } from "../../normalize/mask-thread/thread-masks.ts";
import type { Normalizer } from "../../normalize/normalizer.ts";
import type { ChannelStore } from "./channel-store.ts";
import { HashedFrame, type PendingFrame, type Redact } from "./pending-frame.ts";

/** A frame that is not recorded yet. It is masked together with the output pieces before it. */
export type FreshFrame = { readonly frame: PendingFrame; readonly masked: HashedFrame };

type FreshOptions = { readonly normalizer: Normalizer; readonly channel: string; readonly redact: Redact };

/** The frames that the log does not have, in order. Uses up the known frames that match the others. */
export async function freshFrames(
  { known, tails }: Pick<ChannelStore, "known" | "tails">,
  frames: readonly PendingFrame[],
  { normalizer, channel, redact }: FreshOptions,
): Promise<readonly FreshFrame[]> {
  const fresh: FreshFrame[] = [];
  const yieldIfDue = yieldToEventLoop();
  for (const frame of frames) {
    await yieldIfDue();
    const alone = frame.masked(redact);
    const { piece } = alone;
    const after = (tail: string) => maskedAfter(normalizer, channel, alone, tail);
    const masked = piece === undefined ? alone : await after(tails.before(piece.stream));
    const isKnown = (one: HashedFrame) => known.size > 0 && known.take([one.sha], frame.at, frame.timestamp);
    // By its bytes before masking. Otherwise it was recorded without their hash, or with another key: then by its masked
    // bytes. It may have been masked after other pieces, or after none.
    let isRepeated = known.size > 0 && known.take(frame.rawHashes, frame.at);
    isRepeated ||= isKnown(masked) || (piece !== undefined && known.size > 0 && isKnown(alone));
    if (!isRepeated && piece !== undefined && known.size > 0) {
      for (const tail of tails.recent)
        if (isKnown(await after(tail))) {
          isRepeated = true;
          break;
        }
    }
    if (masked.piece !== undefined) tails.took(masked.piece);
    if (!isRepeated) fresh.push({ frame, masked });
  }
  return fresh;
}

/** A small frame where the log has none that may come again: it is fresh. */
export function freshFrame(
  { tails }: Pick<ChannelStore, "tails">,
  frame: PendingFrame,
  { normalizer, channel, redact }: FreshOptions,
): FreshFrame {
  const alone = frame.masked(redact);
  const { piece } = alone;
  if (piece === undefined) return { frame, masked: alone };
  const masked = maskedHere(normalizer, channel, alone, tails.before(piece.stream));
  tails.took(masked.piece ?? piece);
  return { frame, masked };
}

async function maskedAfter(
  normalizer: Normalizer,
  channel: string,
  alone: HashedFrame,
  tail: string,
): Promise<HashedFrame> {
  const { maskInThread: apart } = normalizer;
  if (tail === "" || apart === undefined || !isLarge(alone.bytes)) {
    return maskedHere(normalizer, channel, alone, tail);
  }
  try {
    return maskedAs(await apart.maskAfter(channel, alone.bytes, tail), alone);
  } catch {
    return maskedHere(normalizer, channel, alone, tail);
  }
}

function maskedHere({ maskAfter }: Normalizer, channel: string, alone: HashedFrame, tail: string): HashedFrame {
  if (tail === "" || maskAfter === undefined) return alone;
  return maskedAs(maskAfter(channel, alone.bytes, tail), alone);
}

type After = { readonly bytes: Uint8Array; readonly redacted: number; readonly text: string };

function maskedAs({ bytes, redacted, text }: After, alone: HashedFrame): HashedFrame {
  if (bytes === alone.bytes || alone.piece === undefined) return alone;
  return new HashedFrame({ bytes, redacted: alone.redacted + redacted, piece: { ...alone.piece, text } });
}
