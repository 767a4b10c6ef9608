import { basename } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Hello, Item, PushRequest, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { namePart } from "@tapedeck/shared/source";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { grpcLink } from "@tapedeck/tap/push/link";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  bytesOf,
  framesOf,
  holes,
  kindsOf,
  openLogReader,
  skaffoldSource,
  startHarnessOn,
} from "./testing/ingest-harness.ts";

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

const long = `${recordings.skaffold}/01-dev-success-3-artifacts-5-iterations`;

const startHarness = (developer: string, address: string, more: Parameters<typeof startHarnessOn>[3] = {}) =>
  startHarnessOn(nats.url, developer, address, more);

/** Connections of which it is known to which session they belong. */
const connections = (events: readonly Event[]) =>
  kindsOf(events).filter((kind) => kind === "session.started" || kind === "upstream.restored").length;

const recorded = (developer: string) => logReader.events(skaffoldSource(developer));

describe("every recording is in the log byte for byte, in order", () => {
  it.each(recordingFolders(recordings.skaffold).map((folder) => [basename(folder), folder]))(
    "%s",
    async (name, folder) => {
      const developer = namePart(name);
      const recording = loadRecording(folder);
      await using fake = await startFakeSkaffold({ recording });
      const half = (channel: "v1" | "v2") => Math.floor(recording.messages[channel].length / 2);
      await fake.playUntil({ v1: half("v1"), v2: half("v2") });
      await using _ = await startHarness(developer, fake.address);
      if (half("v1") > 0) {
        await until(async () => framesOf(await recorded(developer), "v1").length === half("v1"), {
          message: "half of it",
        });
      }
      await fake.play();
      await until(
        async () => {
          const events = await recorded(developer);
          expect(framesOf(events, "v1")).toEqual(bytesOf(recording, "v1"));
          expect(framesOf(events, "v2")).toEqual(bytesOf(recording, "v2"));
          return true;
        },
        { message: "all of it" },
      );
      const events = await recorded(developer);
      expect(holes(events)).toEqual([]);
      expect(events.filter(({ kind }) => kind === "session.started")).toHaveLength(1);
      expect(events.filter(({ kind }) => kind === "upstream.unreadable")).toEqual([]);
    },
  );
});

it("two processes on one port are two sessions, a reconnect is none", async () => {
  const recording = loadRecording(long);
  const first = await startFakeSkaffold({ recording, port: await ownPort() });
  await first.playUntil({ v1: 20 });
  await using _ = await startHarness("two", first.address);
  await until(async () => framesOf(await recorded("two"), "v1").length === 20, { message: "the first process" });
  await first.end("graceful");
  await until(async () => kindsOf(await recorded("two")).includes("session.ended"), { message: "its end" });

  const other = loadRecording(`${recordings.skaffold}/04-deploy-failure-then-recovery`);
  await using second = await startFakeSkaffold({ recording: other, port: first.port });
  await second.play();
  await until(
    async () => {
      const events = await recorded("two");
      const [one, two] = [...new Set(events.flatMap(({ session }) => (session === "" ? [] : [session])))];
      const of = (session: string | undefined) => events.filter((event) => event.session === session);
      expect(framesOf(of(one), "v1")).toEqual(bytesOf(recording, "v1").slice(0, 20));
      expect(framesOf(of(two), "v1")).toEqual(bytesOf(other, "v1"));
      expect(framesOf(of(two), "v2")).toEqual(bytesOf(other, "v2"));
      expect(holes(events)).toEqual([]);
      return true;
    },
    { message: "the second process" },
  );
});

// On a busy machine the upstream, which shares this process, may be held up in the middle of its repeat. With the usual
// time the sorter would take that for the end.
const sortedTogether = { replay: { silenceMs: 4_000, pieceMs: 600_000 } };

it("an ingest that starts again goes on with the session, and a shuffled replay adds nothing", async () => {
  const recording = loadRecording(long);
  await using fake = await startFakeSkaffold({ recording, mixReplays: 7 });
  await fake.playUntil({ v1: 40 });
  for (let round = 0; round < 3; round++) {
    await using _ = await startHarness("again", fake.address, { times: sortedTogether });
    const { v1, v2 } = fake.played;
    await until(async () => connections(await recorded("again")) === round + 1, { message: "the next connection" });
    await until(
      async () => {
        const events = await recorded("again");
        return framesOf(events, "v1").length === v1 && framesOf(events, "v2").length === v2;
      },
      { message: "what has been played" },
    );
    await fake.playUntil({ v1: v1 + 10 });
  }
  await using _ = await startHarness("again", fake.address, { times: sortedTogether });
  await fake.play();
  await until(
    async () => {
      const events = await recorded("again");
      expect(framesOf(events, "v1")).toEqual(bytesOf(recording, "v1"));
      expect(framesOf(events, "v2")).toEqual(bytesOf(recording, "v2"));
      return true;
    },
    { message: "all of it" },
  );
  await until(async () => connections(await recorded("again")) === 4, { message: "the last connection" });
  const kinds = kindsOf(await recorded("again"));
  expect(kinds.filter((kind) => kind === "session.started")).toHaveLength(1);
});

it("a second ingest never dials, and takes over when the first is gone", async () => {
  const recording = loadRecording(long);
  await using fake = await startFakeSkaffold({ recording });
  await fake.playUntil({ v1: 10 });
  const first = await startHarness("pair", fake.address);
  // On a machine that is busy it may have dialled before it had the source.
  await until(async () => framesOf(await recorded("pair"), "v1").length === 10, { message: "the first to record" });
  await using second = await startHarness("pair", fake.address);
  await until(() => second.ingest.status()[0]?.state === "standby", { message: "the second to stand by" });
  await fake.playUntil({ v1: 30 });
  await until(async () => framesOf(await recorded("pair"), "v1").length === 30, { message: "frames" });
  expect(fake.peers.size).toBe(1);

  await first[Symbol.asyncDispose]();
  await until(() => second.ingest.status()[0]?.connected, { message: "the second to take over" });
  await fake.play();
  await until(
    async () => {
      expect(framesOf(await recorded("pair"), "v1")).toEqual(bytesOf(recording, "v1"));
      return true;
    },
    { message: "all of it" },
  );
  expect(fake.peers.size).toBe(2);
});

/** The push of a tap elsewhere, which sends that much and stays. */
function pushOf(
  harness: Awaited<ReturnType<typeof startHarness>>,
  { developer, upstream = "skaffold" }: { readonly developer: string; readonly upstream?: string },
  reported: readonly Item["what"][] = [],
) {
  const client = new RecorderClient(harness.ingest.addresses.grpc, credentials.createInsecure());
  const stop = new AbortController();
  const hello = Hello.fromPartial({ developer, project: "shop", upstream, tap: "RUN" });
  const welcomed = Promise.withResolvers<string>();
  const committed = Promise.withResolvers<void>();
  const requests = async function* (): AsyncGenerator<PushRequest> {
    yield PushRequest.fromPartial({ body: { $case: "hello", value: hello } });
    for (const [index, what] of reported.entries()) {
      const value = Item.fromPartial({ index: BigInt(index + 1), connection: "C1", ...(what && { what }) });
      yield PushRequest.fromPartial({ body: { $case: "item", value } });
    }
    await new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
  };
  const pushing = (async () => {
    for await (const { body } of grpcLink(client)(requests(), stop.signal)) {
      if (body?.$case === "welcome") welcomed.resolve(body.value.source);
      if (body?.$case === "committed" && body.value.index === BigInt(reported.length)) committed.resolve();
    }
  })().catch((error: unknown) => {
    welcomed.reject(error);
    committed.reject(error);
  });
  // Not every test waits for both.
  void Promise.allSettled([welcomed.promise, committed.promise]);
  return {
    welcomed: welcomed.promise,
    committed: committed.promise,
    async kill() {
      stop.abort();
      await pushing;
      client.close();
    },
  };
}

it("a source at whose address nothing listens is free for another tap, and is taken when somebody listens", async () => {
  const recording = loadRecording(long);
  const { port, address, ...stopped } = await startFakeSkaffold({ recording, port: await ownPort() });
  await stopped[Symbol.asyncDispose]();
  await using harness = await startHarness("erin", address);
  const state = () => harness.ingest.status().map(({ source, state: one, tap }) => ({ source, state: one, tap }));
  const source = skaffoldSource("erin");
  await until(() => state()[0]?.state === "waiting for the upstream", { message: "the source to be free" });

  const run = pushOf(harness, { developer: "erin" });
  expect(await run.welcomed).toBe(source);

  // The tap that has it keeps it; then it is the configured source's again.
  await using fake = await startFakeSkaffold({ recording, port });
  await until(() => state().find(({ tap }) => tap !== "RUN")?.state === "standby", { message: "it to stand by" });
  expect(fake.health.v1.opened).toBe(0);
  await run.kill();
  await fake.play();
  await until(async () => framesOf(await recorded("erin"), "v1").length === bytesOf(recording, "v1").length, {
    message: "all of v1",
  });
});

it("a Vagrant source at whose address nothing listens is free for another tap, too", async () => {
  await using harness = await startHarness("vera", "127.0.0.1:9", { upstream: "vagrant" });
  await until(() => harness.ingest.status()[0]?.state === "waiting for the upstream", { message: "it to be free" });
  const run = pushOf(harness, { developer: "vera", upstream: "vagrant" });
  expect(await run.welcomed).toBe("default/vera/shop/vagrant");
  await run.kill();
});

it("a source whose tap was killed is named by /readyz, with the time at which it was last heard", async () => {
  // It is lost after 15 s, and given up after this time, which a starved machine must not miss in between.
  await using harness = await startHarness("otto", "127.0.0.1:9", { env: { TAPEDECK_INGEST_LOST_AFTER: "10m" } });
  const ready = async () => {
    const answer = await fetch(`http://${harness.ingest.addresses.health}/readyz`);
    type Details = { readonly lostSources?: number; readonly lost?: Readonly<Record<string, string>> };
    return { status: answer.status, ...((await answer.json()) as { readonly details?: Details }) };
  };
  await until(async () => (await ready()).status === 200, { message: "the log to be there" });
  const [frame] = bytesOf(loadRecording(long), "v1");
  const run = pushOf(harness, { developer: "nina" }, [
    { $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1"] } },
    { $case: "frame", value: { channel: "v1", bytes: frame ?? Buffer.alloc(0), more: false } },
  ]);
  await run.committed;
  await run.kill();
  // Other tests in this file leave sources that are lost, too. The last twenty are named.
  const { status, details } = await until(
    async () => {
      const answer = await ready();
      return answer.details?.lost?.[skaffoldSource("nina")] !== undefined && answer;
    },
    { message: "it to be lost" },
  );
  expect(status).toBe(200);
  expect(details?.lost?.[skaffoldSource("nina")]).toMatch(/^last seen \d{4}-/);
  expect(Math.min(details?.lostSources ?? 0, 20)).toBe(Object.keys(details?.lost ?? {}).length);
});

it("the output of containers is not there twice after a restart, and output that may be lost is named", async () => {
  const recording = loadRecording(`${recordings.skaffold}/10-status-check-port-forward-sync-app-logs`);
  await using fake = await startFakeSkaffold({ recording });
  const logs = bytesOf(recording, "logs");
  const logsSeen = async () => framesOf(await recorded("printed"), "logs");
  const gaps = async () => kindsOf(await recorded("printed")).filter((kind) => kind === "session.gap").length;
  {
    await using _ = await startHarness("printed", fake.address);
    await until(() => fake.health.logs.opened === 1, { message: "the connection" });
    await fake.playUntil({ logs: 4 });
    await until(async () => (await logsSeen()).length === 4, { message: "four lines" });
  }
  await using _ = await startHarness("printed", fake.address);
  await until(async () => connections(await recorded("printed")) === 2, { message: "the second connection" });
  await fake.play();
  await until(async () => logs.at(-1)?.equals((await logsSeen()).at(-1) ?? Buffer.alloc(0)), {
    message: "the last line",
  });
  const all = (await logsSeen()).map(String);
  expect(new Set(all).size).toBe(all.length);
  expect([all.length === logs.length, await gaps()]).toEqual([true, 0]);
});
