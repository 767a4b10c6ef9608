import { openLog } from "@tapedeck/shared/log/jetstream";
import { connect } from "nats";
import { now, SightingLog, type Sightings } from "../frame/arrivals.ts";

/** A reader of the log that notes when it sees each frame. An event is readable when it is on disk and acknowledged. */

const log = new SightingLog();
let expected = { count: 0, reached: () => {} };

/** Observes a log from now on. Resolves when the live end is reached. */
export async function observe(url: string): Promise<void> {
  const { reader } = await openLog(await connect({ servers: url }), { workspace: "default", syncKnown: true });
  const { lastOffset } = await reader.bounds();
  const caughtUp = Promise.withResolvers<void>();
  const { signal } = new AbortController();
  const read = async () => {
    const follow = reader.follow(
      { afterOffset: lastOffset, subjects: [] },
      { signal, caughtUp: () => caughtUp.resolve() },
    );
    for await (const { event } of follow) {
      if (event.part !== 0 || event.channel === "tapedeck") continue;
      log.see(`${event.source.split("/")[1]} ${event.channel}`, Number(event.frame_ordinal), now());
      if (log.count === expected.count) expected.reached();
    }
  };
  read().catch(caughtUp.reject);
  await caughtUp.promise;
}

/** Resolves when so many frames were seen since the last `take`. */
export async function sawFrames(count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  expected = { count, reached: resolve };
  if (log.count >= count) resolve();
  await promise;
}

/** What was seen since the last call. */
export const take = (): Sightings => log.take();
