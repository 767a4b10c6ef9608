import type { Client, SourceFilter } from "@tapedeck/client";
import { CauseReader, withCauses } from "@tapedeck/client/lanes/causes";
import { foldNow, type Now, nowKinds } from "@tapedeck/client/lanes/now";
import { readLanes } from "@tapedeck/client/lanes/read-lanes";

/** Calls `show` with what the sources do, and again after each change, until the signal. Rejects as the client does. */
export async function followLanes(
  client: Client,
  filter: SourceFilter,
  signal: AbortSignal,
  show: (now: Now) => void,
): Promise<void> {
  const { now: first, after } = await readLanes(client, filter, signal);
  let now = first;
  show(now);
  // Dropped events are older than what is shown.
  const messages = client.subscribe({ ...filter, kinds: nowKinds, after, signal, onGap: () => {} });
  const causes = new CauseReader(client, signal, (operations) => {
    now = withCauses(now, operations);
    show(now);
  });
  for await (const message of messages) {
    if (message.type !== "event") continue;
    now = foldNow(now, message.event);
    causes.after(message.event);
    show(now);
  }
}
