import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { startFakeRkt } from "@tapedeck/fakes/rkt/server";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { BuildEvent, LogEntry, MetaEvent } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type PushResponse, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { until } from "@tapedeck/shared/testing/until";
import { startCli } from "tapedeck/testing/cli";
import { afterAll, beforeAll, expect, it } from "vitest";
import { skaffoldClient } from "../skaffold/client.ts";
import { expectIs } from "../stack/answer-schemas.ts";
import { type Stack, startStack } from "../stack/stack.ts";

// A tap that is killed while its upstream works, and an upstream that disappears: clients learn that the source is
// lost.

const folder = mkdtempSync(join(tmpdir(), "lost-sources-"));
const cleanup = new AsyncDisposableStack();
cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
let stack: Stack;
let host: Awaited<ReturnType<typeof startFakeRkt>>;
let vagrant: Awaited<ReturnType<typeof startFakeVagrant>>;

beforeAll(async () => {
  const recording = madeUpRecording({ pods: [[runningPod(0)]], images: [[]] });
  host = cleanup.use(await startFakeRkt({ recording, repeatOnReconnect: true }));
  host.setDir("/var/lib/rkt");
  vagrant = cleanup.use(await startFakeVagrant());
  const env = { TAPEDECK_INGEST_LOST_AFTER: "1s" };
  stack = cleanup.use(
    await startStack({
      rkt: [{ address: host.address, interval: "20ms" }],
      vagrant: [{ address: vagrant.address }],
      env,
    }),
  );
  await stack.described();
});
afterAll(() => cleanup.disposeAsync());

type Item = Readonly<Record<string, unknown>>;

async function get<Answer = { readonly items: readonly Item[] }>(path: string): Promise<Answer> {
  const { status, body } = await stack.httpCall("GET", `/api/v1/${path}`);
  expect(status).toBe(200);
  const answer: unknown = JSON.parse(body);
  return answer as Answer;
}

/** Pushes the beginning of a build through the gateway, waits until it is in the log, and breaks off. */
async function killInMidBuild(developer: string): Promise<void> {
  const client = new RecorderClient(stack.grpc, credentials.createInsecure());
  const call = client.push();
  call.on("error", () => {});
  const committed = Promise.withResolvers<void>();
  call.on("data", ({ body }: PushResponse) => {
    if (body?.$case === "committed" && body.value.index === 3n) committed.resolve();
  });
  const now = BigInt(Math.floor(Date.now() / 1_000));
  const entry = (event: LogEntry["event"], nanos: number) => {
    const timestamp = { seconds: now, nanos };
    return Buffer.from(LogEntry.encode(LogEntry.fromPartial({ timestamp, event })).finish());
  };
  const meta = MetaEvent.fromPartial({ entry: "Starting Skaffold: ", metadata: {} });
  const build = BuildEvent.fromPartial({ artifact: "web", status: "In Progress" });
  const hello = { developer, project: "shop", upstream: "skaffold", tap: "T", labels: {}, redact: "on" };
  call.write({ body: { $case: "hello", value: { ...hello, first_index: 1n, settings: {} } } });
  const frames = [
    entry({ event_type: { $case: "metaEvent", value: meta } }, 1),
    entry({ event_type: { $case: "buildEvent", value: build } }, 2),
  ];
  const at = { seconds: now, nanos: 0 };
  const dialled = { $case: "dialled" as const, value: { address: "127.0.0.1:50051", channels: ["v1"] } };
  call.write({ body: { $case: "item", value: { index: 1n, connection: "C1", at, what: dialled } } });
  for (const [i, bytes] of frames.entries()) {
    const what = { $case: "frame" as const, value: { channel: "v1", bytes, more: false } };
    call.write({ body: { $case: "item", value: { index: BigInt(i + 2), connection: "C1", at, what } } });
  }
  await committed.promise;
  call.cancel();
  client.close();
}

it("a source whose tap was killed is reported as lost everywhere, and no end is invented", async () => {
  await killInMidBuild("zoe");
  const session = async () => (await get("sessions?source=zoe/shop")).items[0];
  // The source exists once query has its first event.
  await until(async () => typeof (await session())?.endReason === "string", { message: "the session to be given up" });
  await stack.caughtUp();
  expect(await session()).toMatchObject({ endedAt: null, endReason: "nothing more was received from it", gaps: 1 });

  const { items } = await get("sources?source=zoe/shop");
  expect(items).toMatchObject([{ status: "lost", notHeardSince: expect.stringMatching(/^\d{4}-/) }]);
  const [{ notHeardSince, lastPosition } = {}] = items;
  expect((await get("operations?source=zoe/shop&kind=build")).items).toMatchObject([
    { subject: "web", outcome: "unknown", endedAt: null, durationMs: null },
  ]);

  const state = await get<Item>("state?source=zoe/shop");
  expectIs("State", state);
  expect(state).toMatchObject({ notHeardSince, state: { v1: { buildState: { artifacts: { web: "In Progress" } } } } });
  using client = skaffoldClient(stack.grpc);
  const { metadata } = await client.unary("/proto.SkaffoldService/GetState", undefined, {
    "tapedeck-source": "zoe/shop",
  });
  expect(metadata.get("tapedeck-not-heard-since")).toEqual([notHeardSince]);

  await using status = startCli(["status"], {
    cwd: folder,
    env: { TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_DATA: folder, XDG_STATE_HOME: folder },
  });
  expect([await status.ended, status.stderr()]).toEqual([0, ""]);
  // The last column counts its gap.
  expect(status.stdout()).toMatch(/^zoe\/shop\/skaffold +lost, last seen .* ago +127\.0\.0\.1:50051 .* 1$/m);

  // The state at the beginning of the session, when the source was still heard.
  const started = (await session())?.startPosition;
  expect(await get<Item>(`state?source=zoe/shop&at=${started}`)).toMatchObject({ notHeardSince: null });
  expect(await get<Item>(`state?source=zoe/shop&at=${lastPosition}`)).toMatchObject({ notHeardSince });
});

it.each([
  ["h1/host", () => ({ goAway: host.goAway, comeBack: host.comeBack })],
  ["alice/shop", () => ({ goAway: vagrant.goAway, comeBack: vagrant.restart })],
])("%s reports since when it was not heard if its service is gone while its tap lives", async (source, upstream) => {
  const state = () => get<Item>(`state?source=${source}`);
  await until(async () => (await state()).notHeardSince === null, { message: "it to be heard" });
  await upstream().goAway();
  const missed = await until(
    async () => {
      const answer = await state();
      return answer.notHeardSince !== null && answer;
    },
    { message: "it to be missed" },
  );
  expectIs("State", missed);
  const { notHeardSince } = missed;
  expect((await get(`sources?source=${source}`)).items).toMatchObject([{ status: "lost", notHeardSince }]);
  await using status = startCli(["state", "-s", source], {
    cwd: tmpdir(),
    env: { TAPEDECK_URL: `http://${stack.http}` },
  });
  expect([await status.ended, status.stderr()]).toEqual([0, ""]);
  expect(status.stdout()).toContain("last seen ");
  await upstream().comeBack();
  await until(async () => (await state()).notHeardSince === null, { message: "it to be heard again" });
  expect((await get(`sessions?source=${source}`)).items).toMatchObject([{ endReason: null }]);
});
