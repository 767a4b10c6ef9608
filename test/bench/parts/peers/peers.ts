import { join } from "node:path";
import type { Bench } from "../../frame/bench.ts";
import { startWorker } from "../../frame/worker.ts";
import type * as emmett from "../../workers/emmett.ts";
import { appends } from "./appends.ts";
import { deliveries } from "./deliveries.ts";
import { startRedisPeer } from "./found.ts";
import { replays } from "./replays.ts";
import { startNchan } from "./servers.ts";

/**
 * Compares parts of Tapedeck's work with other products, on the same machine with the same events. Each line is
 * Tapedeck's figure; its calibration is the peer's.
 */
export async function peers(bench: Bench): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await bench.newFolder("peers");
  const use = <T extends AsyncDisposable>(started: T) => cleanup.use(started);
  const [redis, emmettClient, nchan] = await Promise.all([
    startRedisPeer(join(folder, "redis")).then(use),
    startWorker<typeof emmett>(new URL("../../workers/emmett.ts", import.meta.url)).then(use),
    startNchan(join(folder, "nchan")).then(use),
  ]);
  const found = { redis, nchan, emmett: emmettClient };
  await appends(bench, found);
  await replays(bench, found);
  await deliveries(bench, found);
}
