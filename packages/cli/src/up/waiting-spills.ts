import { credentials, status } from "@grpc/grpc-js";
import { grpcLink } from "@tapedeck/ingest/tap/link";
import { type PushLog, pushItems } from "@tapedeck/ingest/tap/push";
import { openSpill } from "@tapedeck/ingest/tap/spill";
import { orphanedSpills } from "@tapedeck/ingest/tap/spill-folder";
import { RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { pause } from "@tapedeck/shared/streams/pause";

export type TakeWaitingSpills = {
  /** Where taps leave their spills. */
  readonly home: string;
  /** The gateway's gRPC, "host:port". */
  readonly to: string;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
};

const lookMs = 3_000;
/** One at a time, and none for longer than this in a row: the source may just be recorded by another tap. */
const patienceMs = 60_000;

/** Pushes what taps that are gone could not, in the order in which they began; looks again now and then. */
export async function takeWaitingSpills({ home, to, say, signal }: TakeWaitingSpills): Promise<void> {
  const client = new RecorderClient(to, credentials.createInsecure(), { "grpc.max_reconnect_backoff_ms": 1_000 });
  // Opened by us, so no longer orphans to others; taken again after the rest.
  const kept = new Set<string>();
  while (!signal.aborted) {
    for (const folder of new Set([...(await orphanedSpills(home)).sort(), ...kept])) {
      if (signal.aborted) break;
      const isTaken = await take(folder, client, say, signal).catch(() => false);
      if (isTaken) kept.delete(folder);
      else kept.add(folder);
    }
    await pause(lookMs, signal);
  }
  client.close();
}

/** How many spills wait there. */
export async function countWaitingSpills(home: string): Promise<number> {
  return (await orphanedSpills(home)).length;
}

async function take(folder: string, client: RecorderClient, say: (line: string) => void, signal: AbortSignal) {
  await using spill = await openSpill({ dir: folder });
  const { developer, project } = spill.hello();
  const log: PushLog = { info: () => {}, warn: () => {} };
  const push = pushItems({
    link: grpcLink(client),
    spill,
    control: async ({ call }) => ({
      call,
      code: status.UNAVAILABLE,
      message: "this process is gone",
      response: Buffer.alloc(0),
    }),
    signal,
    log,
  });
  const isTaken = await push.finish(patienceMs);
  if (isTaken) say(`recorded what waited of ${developer}/${project}`);
  else if (spill.state().nextIndex > spill.state().committed + 1n) spill.persist();
  return isTaken;
}
