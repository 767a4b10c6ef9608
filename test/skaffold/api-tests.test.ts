import { request } from "node:http";
import { join } from "node:path";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { LogEntry, State } from "@tapedeck/proto/skaffold/v1/skaffold";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type SkaffoldClient, skaffoldClient } from "./client.ts";

// What Skaffold's own integration tests check of its API, at Tapedeck's address: a project of one artifact, after its
// first loop. Controls and their effects: gateway.test.ts.

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");
/** Messages of the first loop: one of the configuration, and a start and an end of the loop, the build and the deploy. */
const count = 7;

const cleanup = new AsyncDisposableStack();
let stack: Stack;
let client: SkaffoldClient;

beforeAll(async () => {
  const fake = cleanup.use(await startFakeSkaffold({ recording: firstLoopOfOneArtifact() }));
  stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
  client = cleanup.use(skaffoldClient(stack.grpc));
  await stack.connected();
  await fake.play();
  await stack.drained(fake);
});
afterAll(() => cleanup.disposeAsync());

function firstLoopOfOneArtifact(): RecordedUpstream {
  const recording = loadRecording(join(recordings, "26-dev-sync-fails"));
  const isOfOthers = (bytes: Buffer) => {
    const event = LogEntry.decode(bytes).event?.event_type;
    return event?.$case === "buildEvent" && event.value.artifact !== "web";
  };
  const v1 = recording.messages.v1.filter(({ bytes }) => !isOfOthers(bytes)).slice(0, count);
  return { ...recording, messages: { ...recording.messages, v1 } };
}

/** How many messages there are of each type. */
function typesOf(entries: readonly LogEntry[]): Readonly<Record<string, number>> {
  const types = Map.groupBy(entries, ({ event }) => event?.event_type?.$case ?? "");
  return Object.fromEntries([...types].map(([type, all]) => [type, all.length]));
}

const expected = { metaEvent: 1, devLoopEvent: 2, buildEvent: 2, deployEvent: 2 };

describe("Skaffold's own tests of its API", () => {
  it.each(["Events", "EventLog"])("%s over gRPC has each message of the first loop", async (method) => {
    const messages = await client.take(`/proto.SkaffoldService/${method}`, count);
    expect(typesOf(messages.map((bytes) => LogEntry.decode(bytes)))).toEqual(expected);
  });

  it.each(["/v1/events", "/v1/event_log"])("%s has each message of the first loop, one to a read", async (path) => {
    const reads = await readsOf(path, count);
    const entries = reads.map((text) => {
      expect(text).toMatch(/^\{"result":.*\}\n$/);
      const { result } = JSON.parse(text) as { readonly result: unknown };
      return LogEntry.fromJSON(result);
    });
    expect(typesOf(entries)).toEqual(expected);
  });

  it("the states over gRPC and HTTP say that everything is built and deployed", async () => {
    const overGrpc = State.decode((await client.unary("/proto.SkaffoldService/GetState")).bytes);
    const overHttp = State.fromJSON(JSON.parse((await stack.httpCall("GET", "/v1/state")).body));
    for (const state of [overGrpc, overHttp]) {
      expect(state.buildState?.artifacts).toMatchObject({ web: "Complete" });
      expect(state.deployState?.status).toBe("Complete");
    }
  });
});

/** What each read of the answer's body gives, as a client sees it that reads on as soon as there is something. */
function readsOf(path: string, reads: number): Promise<readonly string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
  const call = request(`http://${stack.http}${path}`, (answer) => {
    const texts: string[] = [];
    answer.setEncoding("utf8").on("data", (text: string) => {
      texts.push(text);
      if (texts.length < reads) return;
      call.destroy();
      resolve(texts);
    });
  });
  call.on("error", reject).end();
  return promise;
}
