import { sourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { until } from "@tapedeck/shared/testing/until";
import type * as logObserver from "../workers/log-observer.ts";
import type * as rawLog from "../workers/raw-log.ts";
import type * as skaffold from "../workers/skaffold.ts";
import type { Stack } from "./stack.ts";
import { startWorker, type Worker } from "./worker.ts";

/** Shared by the parts with upstreams: fakes, an observer of the log, and raw publishes as their calibration. */

type Upstreams = Worker<typeof skaffold>;
type Observer = Worker<typeof logObserver>;
type Raw = Worker<typeof rawLog>;

/** The first frames of a connection: later frames are recorded at once and no longer held for sorting. */
export const opening = 50;

/** `cores`: the cores to pin it to. */
export const startUpstreams = (cores?: string): Promise<Upstreams> =>
  startWorker<typeof skaffold>(new URL("../workers/skaffold.ts", import.meta.url), cores);

export const startRaw = (): Promise<Raw> =>
  startWorker<typeof rawLog>(new URL("../workers/raw-log.ts", import.meta.url));

export async function startObserver({ nats }: Pick<Stack, "nats">): Promise<Observer> {
  const observer = await startWorker<typeof logObserver>(new URL("../workers/log-observer.ts", import.meta.url));
  await observer.call("observe", nats.url);
  return observer;
}

export const sourcesOf = (addresses: readonly string[]) =>
  addresses.map((address, index) => ({ developer: `dev-${index}`, address }));

/** Resolves when every source is connected and its opening is in the log. */
export async function settle(upstreams: Upstreams, observer: Observer, sources: number): Promise<void> {
  await connected(upstreams, sources);
  await upstreams.call("playTo", opening);
  await observer.call("sawFrames", opening * sources);
  await observer.call("take");
}

export async function connected(upstreams: Upstreams, sources: number): Promise<void> {
  const isConnected = async () => (await upstreams.call("listeners")) === 2 * sources;
  await until(isConnected, { message: "all sources to be connected", deadlineMs: 600_000 });
}

/**
 * Resolves with the number of events when exactly so many frames of the first source are in the log. Reads only the
 * log's last message, because a reader of all events would take time from what is measured.
 */
export async function recordedTo({ log }: Stack, frames: number): Promise<{ readonly events: number }> {
  const source = sourceName({ workspace: "default", developer: "dev-0", project: "shop", upstream: "skaffold" });
  const sum = ({ v1 = 0, v2 = 0 }: Readonly<Record<string, number>>) => v1 + v2;
  for (;;) {
    const cursor = (await log.writer.lastOf(source))?.mark.cursor;
    const seen = sum(cursor?.frames ?? {});
    if (seen > frames) throw new Error(`${seen} frames were recorded, and only ${frames} said`);
    if (seen === frames) return { events: sum(cursor?.ordinals ?? {}) };
    await delay(5);
  }
}
