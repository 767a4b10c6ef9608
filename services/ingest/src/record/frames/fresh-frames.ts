import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import type { Normalizer } from "../../normalize/normalizer.ts";
import { isLarge } from "../../secrets/worker/thread-masks.ts";
import type { HeldFrame, Masked, Redact } from "../session/connection.ts";
import type { ChannelStore } from "./channel-store.ts";
import { shaOf } from "./original.ts";

/** A frame that is not recorded yet. It is masked together with the output pieces before it. */
export type FreshFrame = { readonly frame: HeldFrame; readonly masked: Masked };

type FreshOptions = { readonly normalizer: Normalizer; readonly channel: string; readonly redact: Redact };

/** The frames that the log does not have, in order. Uses up the known frames that match the others. */
export async function freshFrames(
  { known, tails }: Pick<ChannelStore, "known" | "tails">,
  frames: readonly HeldFrame[],
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
    const isKnown = ({ sha }: Masked) => known.take(sha, frame.at, frame.moment);
    // It may have been recorded after other pieces, or after none.
    let isRepeated = isKnown(masked) || (piece !== undefined && known.size > 0 && isKnown(alone));
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

async function maskedAfter(
  { maskAfter, maskInThread: apart }: Normalizer,
  channel: string,
  alone: Masked,
  tail: string,
): Promise<Masked> {
  const { piece } = alone;
  if (tail === "" || maskAfter === undefined || piece === undefined) return alone;
  const here = () => maskAfter(channel, alone.bytes, tail);
  const { bytes, redacted, text } =
    apart !== undefined && isLarge(alone.bytes)
      ? await apart.maskAfter(channel, alone.bytes, tail).catch(here)
      : here();
  if (bytes === alone.bytes) return alone;
  return { bytes, redacted: alone.redacted + redacted, sha: shaOf(bytes), piece: { ...piece, text } };
}
