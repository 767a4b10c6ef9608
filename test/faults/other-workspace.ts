import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { expect } from "vitest";
import { linkTo, PushingTap } from "../harness/pushing-tap.ts";
import { openTestLog } from "./processes.ts";
import { framesOf, holes, kindsOf, sourceEvents } from "./recorded-events.ts";
import type { ServiceProcess } from "./service-process.ts";

const workspace = "acme";
const pauseMs = 20;

export type OtherWorkspaceOptions = {
  /** The address of NATS. */
  readonly nats: string;
  readonly services: { readonly ingest: ServiceProcess };
  /** The connection string of the tables; absent: without tables. */
  readonly database?: string;
};

/** Records all the time in a workspace of its own, while a test does something to the one of the services. */
export async function startOtherWorkspace({ nats, services, database }: OtherWorkspaceOptions) {
  await using cleanup = new AsyncDisposableStack();
  const log = cleanup.use(await openTestLog(nats, workspace));
  const metadata = { "tapedeck-key": "test-key", "tapedeck-workspace": workspace };
  const link = linkTo(services.ingest.addresses.grpc ?? "", metadata);
  const tap = cleanup.use(await PushingTap.start({ link, project: "beside" }));
  const source = sourceName({ workspace, developer: "alice", project: "beside", upstream: "skaffold" });
  const idsIn = async (url: string) => {
    const client = new Client(url);
    await client.connect();
    try {
      const text = "select id from tapedeck.events where workspace = $1 order by position";
      return (await client.query<{ id: string }>(text, [workspace])).rows.map(({ id }) => id);
    } finally {
      await client.end();
    }
  };
  tap.speak(pauseMs);
  const owned = cleanup.move();
  return {
    idsIn,
    /** Ends the recording, and checks that all that was said is in log and tables, once and in order, and nothing else. */
    async finish(): Promise<void> {
      let isRecorded = false;
      void tap.finish().then(() => {
        isRecorded = true;
      });
      await until(() => isRecorded, { message: `what was said in ${workspace} to be recorded` });
      const events = await sourceEvents(log.reader, source)();
      expect(framesOf(events, "v1")).toEqual(tap.said.map((text) => Buffer.from(text).toString("base64")));
      expect(holes(events)).toEqual([]);
      expect(kindsOf(events).filter((kind) => /^session\.(started|ended|gap)$/.test(kind))).toEqual([
        "session.started",
      ]);
      if (database === undefined) return;
      const ids = events.map(({ event }) => event.id);
      const areThere = async () => (await idsIn(database)).length >= ids.length;
      await until(areThere, { message: `the tables of ${workspace} to have all` });
      expect(await idsIn(database)).toEqual(ids);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
