import type { PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { delay } from "@tapedeck/shared/sync/delay";
import { msBetween, msOfTimestamp, timestampNow, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import type { PushResponses } from "./push-responses.ts";
import type { PushedSession } from "./pushed-session.ts";
import type { LastSeenPublisher } from "./session/publish-last-seen.ts";
import { withinTime } from "./within-time.ts";

/** A channel without an item for this long is silent. The time is longer while the tap is behind. */
const silenceMs = { live: 200, behind: 2_000 } as const;
const behindMs = 2_000;

/**
 * Takes what the tap pushes until its stream ends. Resolves when all of it is in the log. `lastSeen` learns when messages
 * were sent and of other connections to the upstream.
 */
export async function takeAll(
  iterator: AsyncIterator<PushRequest>,
  session: PushedSession,
  responses: PushResponses,
  signal: AbortSignal,
  lastSeen: Pick<LastSeenPublisher, "sent" | "connected">,
): Promise<void> {
  let next = ask();
  let at = timestampNow();
  let came = performance.now();
  // Reading a signal that was made of others takes long.
  let isOver = signal.aborted;
  signal.addEventListener("abort", () => {
    isOver = true;
  });
  while (!isOver) {
    const silence = msBetween(at, timestampNow()) > behindMs ? silenceMs.behind : silenceMs.live;
    const got = session.waiting ? await withinTime(next, silence) : await next;
    if (isOver) return;
    if (got === undefined) {
      await session.advance(timestampOfMs(msOfTimestamp(at) + performance.now() - came));
      continue;
    }
    if (got.done) break;
    const { body } = got.value;
    next = ask();
    if (body?.$case === "control_answer") responses.answered(body.value);
    else if (body?.$case === "stream") responses.streamed(body.value);
    else if (body?.$case === "items") {
      if (body.value.items.some(({ what }) => what?.$case === "dialled")) lastSeen.connected();
      at = body.value.items.at(-1)?.at ?? at;
      came = performance.now();
      await session.take(...body.value.items);
    } else throw new TapedeckError("invalid_argument", "expected an item or an answer", { field: "body" });
  }
  while (session.waiting && !isOver) {
    await delay(silenceMs.live, signal);
    await session.advance(timestampOfMs(msOfTimestamp(at) + performance.now() - came));
  }
  await session.drained();

  function ask() {
    const pending = iterator.next();
    const note = ({ done, value }: IteratorResult<PushRequest>) => {
      if (done !== true && value.sent_at !== undefined) lastSeen.sent(value.sent_at);
    };
    // A failure is handled where it is awaited, or no longer matters.
    pending.then(note, () => {});
    return pending;
  }
}
