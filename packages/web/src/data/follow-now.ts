import { foldNow, type Now, nowKinds } from "@tapedeck/client/lanes/now";
import { readLanes } from "@tapedeck/client/lanes/read-lanes";
import { inFrames } from "./reading.ts";
import { lostSince, tapedeck } from "./tapedeck.ts";

/**
 * What Now shows: lists as of one position, and every event after it. The subscription resumes by position, so nothing is
 * missing or doubled after a lost connection.
 */
export async function followNow(signal: AbortSignal, show: (now: Now) => void): Promise<void> {
  const client = tapedeck();
  const read = await readLanes(client, {}, signal);
  let { now } = read;
  show(now);
  lostSince.value = undefined;
  const { after } = read;
  await inFrames(client.subscribe({ kinds: nowKinds, after, signal, onGap: () => {} }), signal, (batch) => {
    for (const message of batch) if (message.type === "event") now = foldNow(now, message.event);
    show(now);
  });
}
