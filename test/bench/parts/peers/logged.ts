import { encodeEvent } from "@tapedeck/shared/events/codec";
import { writeEventJson } from "@tapedeck/shared/events/json";
import { logStart } from "@tapedeck/shared/log/offset";
import type { Stack } from "../../frame/stack.ts";

/** An event that Tapedeck has recorded. */
export type Logged = {
  /** The event's bytes in the log. */
  readonly bytes: Uint8Array;
  /** The event's JSON for subscribers. */
  readonly json: string;
  /** The same JSON with the upstream's own bytes. */
  readonly fullJson: string;
};

/** The input of peers repeats these events. */
const enough = 2_000;

/** The first frames in the log of a stack. */
export async function loggedFrames({ log }: Stack): Promise<readonly Logged[]> {
  const { lastOffset } = await log.reader.bounds();
  const found: Logged[] = [];
  for await (const recorded of log.reader.history(
    { afterOffset: logStart, subjects: [] },
    lastOffset,
    AbortSignal.timeout(30_000),
  )) {
    if (recorded.event.channel === "tapedeck") continue;
    const json = (original: boolean) => writeEventJson(recorded, log.epoch, { original });
    found.push({ bytes: encodeEvent(recorded.event), json: json(false), fullJson: json(true) });
    if (found.length >= enough) break;
  }
  return found;
}
