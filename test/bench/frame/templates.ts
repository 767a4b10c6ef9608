import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNatsServer, startNatsServer } from "@tapedeck/infra/local/nats-server";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { decodeEvent, encodeEvent } from "@tapedeck/shared/events/codec";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { logStart } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import type * as skaffold from "../workers/skaffold.ts";
import type { Bench } from "./bench.ts";
import { startWorker } from "./worker.ts";

/** The events that ingest made of a recorded Skaffold session: whole dev loops, and what came before them. */
export type Templates = { readonly opening: readonly Event[]; readonly frames: readonly Event[] };

const frames = 341;
/** The other events of a new connection depend on how fast its answers come. */
const openingKinds = ["source.added", "session.started", "upstream.connected"];
let made: Promise<Templates> | undefined;

/** Recorded once per process, so that every part is measured on events as ingest writes them. */
export function templates(bench: Bench): Promise<Templates> {
  made ??= record(bench);
  return made;
}

export const copyOf = (event: Event): Event => decodeEvent(encodeEvent(event));

async function record(bench: Bench): Promise<Templates> {
  await using cleanup = new AsyncDisposableStack();
  const upstream = cleanup.use(await startWorker<typeof skaffold>(new URL("../workers/skaffold.ts", import.meta.url)));
  const [address] = await upstream.call("start", 1, frames);
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const binary = await findNatsServer({ bin: join(root, ".tapedeck", "bin"), log: () => {} });
  const dataDir = join(await bench.newFolder("templates"), "nats");
  const nats = cleanup.use(await startNatsServer({ binary, dataDir, port: 0, syncAlways: false }));
  const sources = [{ developer: "dev", project: "shop", address }];
  cleanup.use(
    await bench.startService("ingest", {
      TAPEDECK_NATS_URL: nats.url,
      TAPEDECK_SOURCES: JSON.stringify(sources),
      TAPEDECK_INGEST_SPILL_DIR: await bench.newFolder("spill"),
    }),
  );
  const connection = cleanup.adopt(await connect({ servers: nats.url }), (nc) => nc.close());
  const { reader } = cleanup.use(await openLog(connection, { workspace: "default", syncKnown: true }));
  await upstream.call("playTo", frames);
  const events = await until(
    async () => {
      const { lastOffset } = await reader.bounds();
      const all: Event[] = [];
      const signal = AbortSignal.timeout(30_000);
      for await (const { event } of reader.history({ afterOffset: logStart, subjects: [] }, lastOffset, signal))
        all.push(event);
      return all.filter(({ channel, part }) => channel !== "tapedeck" && part === 0).length === frames && all;
    },
    { message: "the templates to be recorded" },
  );
  return {
    opening: openingKinds.flatMap((kind) => events.find((event) => event.kind === kind) ?? []),
    frames: events.filter(({ channel }) => channel !== "tapedeck"),
  };
}
