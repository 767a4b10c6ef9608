import { CauseReader, withCauses } from "@tapedeck/client/lanes/causes";
import { foldNow, type Now, nowKinds } from "@tapedeck/client/lanes/now";
import { readLanes } from "@tapedeck/client/lanes/read-lanes";
import { inFrames, useReading } from "./reading.ts";
import { now, nowError } from "./shown.ts";
import { lostSince, mustSignIn, tapedeck } from "./tapedeck.ts";

/** Keeps `now` as it is in every view: the header counts it. The next person who signs in begins with nothing. */
export function useNow(): void {
  const isKnown = !mustSignIn.value;
  useReading(
    [isKnown],
    async (signal) => {
      nowError.value = undefined;
      if (!isKnown) {
        now.value = undefined;
        return;
      }
      await followNow(signal, (found) => {
        now.value = found;
      });
    },
    (text) => {
      nowError.value = text;
    },
  );
}

/**
 * What Now shows: lists as of one position, and every event after it. The subscription resumes by position, so nothing is
 * missing or doubled after a lost connection.
 */
async function followNow(signal: AbortSignal, show: (now: Now) => void): Promise<void> {
  const client = tapedeck();
  const read = await readLanes(client, {}, signal);
  let { now: shown } = read;
  show(shown);
  lostSince.value = undefined;
  const { after } = read;
  const causes = new CauseReader(client, signal, (operations) => {
    shown = withCauses(shown, operations);
    show(shown);
  });
  await inFrames(client.subscribe({ kinds: nowKinds, after, signal, onGap: () => {} }), signal, (batch) => {
    for (const message of batch) {
      if (message.type !== "event") continue;
      shown = foldNow(shown, message.event);
      causes.after(message.event);
    }
    show(shown);
  });
}
