import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { SkaffoldServer } from "@tapedeck/gateway/for-cli/skaffold-server";
import { logStart } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { exportSessions } from "tapedeck/commands/export/run";
import { play } from "tapedeck/commands/replay/play";
import { recordedSession } from "tapedeck/commands/replay/recorded-session";
import { serveTape } from "tapedeck/commands/replay/serve";
import { type Tape, tapeOf } from "tapedeck/commands/replay/tape";
import { urlOf } from "tapedeck/testing/recorder";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { skaffoldClient } from "../skaffold/client.ts";
import { httpCall } from "./http-call.ts";
import { type Stack, startStack } from "./stack.ts";

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings", "skaffold", "01-dev-success-3-artifacts-5-iterations"),
);
const methods = { v1: "/proto.SkaffoldService", v2: "/proto.v2.SkaffoldV2Service" } as const;
const anyPort = { host: "127.0.0.1", port: 0 };
const never = new AbortController().signal;

const cleanup = new AsyncDisposableStack();
let stack: Stack;
let tape: Tape;
let served: SkaffoldServer;

beforeAll(async () => {
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
  await stack.connected();
  await fake.play();
  await stack.recorded({ v1: recording.messages.v1.length, v2: recording.messages.v2.length });
  tape = tapeOf(await recordedSession({ session: undefined, source: "alice/shop", url: urlOf(stack.grpc) }));
  served = cleanup.use(await serveTape(tape, { grpc: anyPort, http: anyPort }));
});
afterAll(() => cleanup.disposeAsync());

const framesOf = async (address: string, method: string, count: number) => {
  using client = skaffoldClient(address);
  return (await client.take(method, count)).map((bytes) => bytes.toString("base64"));
};
const stateOf = async (address: string, method: string) => {
  using client = skaffoldClient(address);
  return (await client.unary(method)).bytes.toString("base64");
};

describe("a replayed session", () => {
  it("serves nothing before it is played, and exactly the played part at any moment", async () => {
    expect(await stateOf(served.grpc, `${methods.v1}/GetState`)).toBe("");
    while (tape.played < 40) tape.next();
    const { position } = JSON.parse((await stack.httpCall("GET", "/api/v1/state?source=alice/shop")).body);
    expect(position).toBeDefined();
    const at = tape.events[39]?.event;
    // The same events, folded by query from the log.
    const recorded = (await stack.events()).find(({ event }) => event.id === at?.id);
    const then = await stack.httpCall(
      "GET",
      `/v1/state?at=${formatPosition({ epoch: stack.log.epoch, offset: recorded?.offset ?? logStart })}`,
    );
    const now = await httpCall(served.http, "GET", "/v1/state");
    expect(JSON.parse(now.body)).toEqual(JSON.parse(then.body));
  });

  it("serves every frame and state as Skaffold did, over gRPC and HTTP, to early and late clients", async () => {
    const { v1, v2 } = recording.messages;
    const early = framesOf(served.grpc, `${methods.v1}/Events`, v1.length);
    await play(tape, { speed: Number.POSITIVE_INFINITY, longestMs: 0 }, never);
    const said = (messages: typeof v1) => messages.map(({ bytes }) => bytes.toString("base64"));
    expect(await early).toEqual(said(v1));
    expect(await framesOf(served.grpc, `${methods.v1}/Events`, v1.length)).toEqual(said(v1));
    expect(await framesOf(served.grpc, `${methods.v2}/Events`, v2.length)).toEqual(said(v2));
    for (const service of Object.values(methods)) {
      expect(await stateOf(served.grpc, `${service}/GetState`)).toBe(await stateOf(stack.grpc, `${service}/GetState`));
    }
    const [here, there] = await Promise.all([
      httpCall(served.http, "GET", "/v2/state"),
      stack.httpCall("GET", "/v2/state"),
    ]);
    expect(here.body).toBe(there.body);
  });

  it("is the same from an exported file", async () => {
    const folder = await mkdtemp(join(inject("serversFolder"), "replay-"));
    const file = join(folder, "shop.tapedeck.gz");
    await exportSessions([], { url: urlOf(stack.grpc), source: "alice/shop", output: file });
    const filed = await recordedSession({ session: file, source: undefined, url: "127.0.0.1:2" });
    // The session is still running, so more of it may have been recorded since.
    expect(filed.slice(0, tape.events.length)).toEqual(tape.events.map(({ event }) => event));
  });

  it("refuses calls that would change something", async () => {
    const answer = await httpCall(served.http, "POST", "/v1/execute", {}, '{"build":true}');
    expect([answer.status, JSON.parse(answer.body).message]).toEqual([
      503,
      expect.stringContaining("a recorded session"),
    ]);
  });

  it("is played with its own pauses divided by the speed, and none longer than the limit", async () => {
    const pausesOf = async (speed: number, longestMs: number) => {
      const slept: number[] = [];
      const again = tapeOf(tape.events.map(({ event }) => event));
      await play(again, { speed, longestMs, sleep: async (ms) => void slept.push(ms) }, never);
      expect(again.played).toBe(again.events.length);
      return slept;
    };
    const asItWas = await pausesOf(1, Number.POSITIVE_INFINITY);
    const [first, last] = [tape.events[0], tape.events.at(-1)].map((one) => one?.recordedAt.getTime() ?? 0);
    expect(asItWas.reduce((sum, ms) => sum + ms, 0)).toBe((last ?? 0) - (first ?? 0));
    // The recording's own times span some ten seconds of work.
    expect((last ?? 0) - (first ?? 0)).toBeGreaterThan(1_000);
    expect(await pausesOf(10, 50)).toEqual(asItWas.map((ms) => Math.min(ms / 10, 50)));
  });
});
