import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { WorkspaceStore } from "@tapedeck/shared/log/workspaces/workspace-store";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readConfig } from "./config.ts";
import { startIngest } from "./ingest.ts";
import { framesOf, openLogReader, skaffoldSource, testLogger } from "./testing/ingest-harness.ts";

let nats: TestNats;
let logReader: Awaited<ReturnType<typeof openLogReader>>;

beforeAll(async () => {
  nats = await startTestNats();
  logReader = await openLogReader(nats.url);
});

afterAll(async () => {
  await logReader[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

async function startHarness(developer: string, address: string, retention: Record<string, string>) {
  const { folder, ...tidy } = await temporaryFolder();
  const env = {
    ...retention,
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_INGEST_SPILL_DIR: folder,
    TAPEDECK_SOURCES: JSON.stringify([{ developer, project: "shop", address, redact: "off" }]),
  };
  const ingest = await startIngest(readConfig({ env }), testLogger);
  return {
    [Symbol.asyncDispose]: async () => {
      await ingest[Symbol.asyncDispose]();
      await tidy[Symbol.asyncDispose]();
    },
  };
}

/** What was said on a channel beside text, as far as it does not depend on the numbers before it. */
const factsOf = (events: readonly Event[], channel: string) =>
  events
    .filter((event) => event.channel === channel && event.kind !== "log.written")
    .map(({ kind, subject, summary, operation, original }) => ({ kind, subject, summary, operation, original }));

it("facts are the same with and without the text that came between them, also after a restart", async () => {
  const recording = loadRecording(`${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`);
  const facts = (events: readonly Event[]) => [...factsOf(events, "v1"), ...factsOf(events, "v2")];

  /** Half of it, then the rest with another ingest. */
  const record = async (
    developer: string,
    retention: Record<string, string>,
    isComplete: (events: readonly Event[], played: { v1: number; v2: number }) => boolean,
  ) => {
    const events = () => logReader.events(skaffoldSource(developer));
    await using fake = await startFakeSkaffold({ recording });
    await fake.playUntil({ v1: 40 });
    for (const half of ["first", "second"] as const) {
      await using _ = await startHarness(developer, fake.address, retention);
      if (half === "second") await fake.play();
      await until(async () => isComplete(await events(), fake.played), { message: `the ${half} half` });
    }
    return events();
  };

  const byPlayed = new Map<number, number>();
  const all = await record("all", {}, (events, { v1, v2 }) => {
    byPlayed.set(v1, facts(events).length);
    return framesOf(events, "v1").length === v1 && framesOf(events, "v2").length === v2;
  });
  const isText = ({ kind }: Event) => kind === "log.written";
  expect(all.some(isText)).toBe(true);
  const rest = await record(
    "facts",
    { TAPEDECK_RETENTION_TEXT: "1s" },
    (events, { v1 }) => facts(events).length === byPlayed.get(v1) && !events.some(isText),
  );
  expect(facts(rest)).toEqual(facts(all));
  // A workspace that has its own retention has it whatever the settings say.
  const connection = await connect({ servers: nats.url });
  await new WorkspaceStore(connection).putRetention("default", { text: 1 });
  await connection.close();
  const own = await record(
    "own",
    { TAPEDECK_RETENTION_TEXT: "30d" },
    (events, { v1 }) => facts(events).length === byPlayed.get(v1) && !events.some(isText),
  );
  expect(facts(own)).toEqual(facts(all));
});
