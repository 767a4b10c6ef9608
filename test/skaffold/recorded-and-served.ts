import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { Event } from "@tapedeck/proto/skaffold/v2/skaffold";
import { toGatewayJson, withDefaults } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { type SkaffoldClient, skaffoldClient } from "./client.ts";
import { expectLabels } from "./expect-labels.ts";
import { type ExpectedOperation, expectedOperations, type InjectedEvent, sorted } from "./expected-operations.ts";
import { labelledLoops } from "./labelled-loops.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings", "skaffold");

/** Recorded states that Tapedeck answers differently, by name, with the reason. */
const otherStates: Readonly<Record<string, string>> = {
  "05-control-api-auto-off/v2-state-07-after-v2-execute.json": "v2 control calls are not repeated: they act here",
  "05-control-api-auto-off/v2-state-08-after-v2-auto-build-on.json": "v2 control calls are not repeated: they act here",
};

/** Recorded calls that are answered differently, by label, with the reason. */
const otherAnswers: Readonly<Record<string, { readonly status: number; readonly why: string }>> = {
  "GET /": { status: 200, why: "the page is there, whatever is accepted" },
  "Origin header (CORS?)": { status: 403, why: "pages from elsewhere are refused" },
  "Host header of another name": { status: 403, why: "foreign Host names are refused" },
  "v1-termination": { status: 409, why: "would crash Skaffold" },
  "08b-handle-crash-v1-devloop-failed-without-err": { status: 409, why: "would crash Skaffold" },
  "08c-handle-crash-v2-status-check-after-auto-toggle": { status: 409, why: "would crash Skaffold" },
};

/** Not repeated: v2 control calls act here and did nothing there, so they would change what follows. */
const notRepeated = new Set([
  "v2 build+deploy after edit: accepted, nothing is triggered",
  "v2 auto build on: v2 state flag changes, nothing is triggered",
  "v2 auto build on again -> 409",
  "v2 without enabled = false",
]);

type RecordedHttpCall = {
  readonly t: string;
  readonly label: string;
  readonly method?: string;
  readonly path: string;
  readonly requestHeaders?: Readonly<Record<string, string>>;
  readonly requestBody?: string | null;
  readonly requestBase64?: string;
  readonly status?: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly error?: unknown;
  readonly seenBefore: Readonly<Record<string, number>>;
};

/** The tests of one recording: one process, from its start. */
export function recordedAndServed(scenario: string): void {
  describe(`${scenario}, recorded and served again`, () => testsOf(scenario));
}

function testsOf(scenario: string): void {
  const folder = join(fixtures, scenario);
  const recording: RecordedUpstream = loadRecording(folder);
  const isOld = recording.generation !== "C" || recording.version.startsWith("v1.");
  const cleanup = new AsyncDisposableStack();
  let stack: Stack;
  let fake: FakeSkaffold;
  let client: SkaffoldClient;
  let steps = 0;

  beforeAll(async () => {
    fake = cleanup.use(await startFakeSkaffold({ recording }));
    stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address, redact: "off" }] }));
    client = cleanup.use(skaffoldClient(stack.grpc));
    await stack.connected();
  });
  afterAll(() => cleanup.disposeAsync());

  it("answers GetState and control calls at their positions", async () => {
    for (const step of stepsOf(scenario, recording)) {
      await fake.playUntil(step.counts);
      await stack.recorded({ v1: fake.said.v1, v2: fake.said.v2 });
      if (step.call !== undefined) {
        await compareCall(step.call);
        await laterSteps(step.call, step.counts);
      } else if (step.state !== undefined) await compareState(step.state);
    }
    await fake.play();
    await stack.recorded(fake.said);
  });

  it("gives the recorded messages byte for byte, in order, over gRPC", async () => {
    for (const [channel, method] of [
      ["v1", "/proto.SkaffoldService/Events"],
      ["v2", "/proto.v2.SkaffoldV2Service/Events"],
      ["logs", "/proto.v2.SkaffoldV2Service/ApplicationLogs"],
    ] as const) {
      const recorded = recording.messages[channel].map(({ bytes }) => bytes.toString("base64"));
      const got = await client.take(method, recorded.length);
      expect(got.map((bytes) => bytes.toString("base64"))).toEqual(recorded);
    }
  });

  it("gives the recorded JSON over HTTP", async () => {
    for (const [channel, path, type] of [
      ["v1", "/v1/events", "proto.LogEntry"],
      ["v2", "/v2/events", "proto.v2.Event"],
    ] as const) {
      const lines = resultsOf(join(folder, `${channel}-events.ndjson`));
      if (lines.length === 0) continue;
      const expected = isOld ? lines.map((line) => withDefaults(messageType(type), line)) : lines;
      expect(await stack.httpLines(path, expected.length)).toEqual(expected.map((result) => ({ result })));
    }
  });

  it("has exactly the operations that the recording shows", async () => {
    await stack.caughtUp();
    const client = new Client(stack.database);
    await client.connect();
    try {
      await fake.end("kill");
      await stack.sessionEnded();
      const { rows } = await client.query<ExpectedOperation>(
        `select kind, subject, outcome, duration_ms::int as "durationMs", cache_hit as "cacheHit"
         from tapedeck.operations where kind in ('loop', 'build', 'test', 'deploy') and not injected`,
      );
      const expected = expectedOperations(folder, injectedBy(folder));
      expect(sorted(rows)).toEqual(expected);
      const builds = await client.query<{ artifact: string }>(
        "select artifact from tapedeck.build_times where not injected",
      );
      const expectedBuilds = expected.filter(({ kind }) => kind === "build").map(({ subject }) => subject);
      expect(builds.rows.map(({ artifact }) => artifact).sort()).toEqual(expectedBuilds.sort());
    } finally {
      await client.end();
    }
  });

  const labelled = labelledLoops[scenario];
  if (labelled === undefined) throw new Error(`labelled-loops.ts has no labels for ${scenario}`);
  it("has the loops, causes and red times that a person reads from the recording", async () => {
    await expectLabels(stack.database, scenario, stack.source);
    if (labelled.artifacts !== undefined) {
      const { items } = JSON.parse((await stack.httpCall("GET", "/api/v1/stats/flakes?group=artifact")).body) as {
        readonly items: readonly { readonly artifact: string; readonly flakes: number }[];
      };
      const flaky = items.flatMap(({ artifact, flakes }) => (flakes > 0 ? [artifact] : []));
      expect(flaky).toEqual(Object.keys(labelled.artifacts).filter((name) => labelled.artifacts?.[name]?.flakes));
    }
  });

  /** Sends the later intents of one call when the loop of the previous intent has ended. */
  async function laterSteps({ t, path, method, requestBody, status }: RecordedHttpCall, { v1 }: ReplayStep["counts"]) {
    if (method !== "POST" || path !== "/v1/execute" || status !== 200) return;
    const intents = Object.entries(parsed(requestBody ?? "") ?? {}).filter(([, expected]) => expected === true);
    steps += Math.max(1, intents.length);
    if (intents.length > 1) {
      const loops = recording.messages.v1.map(({ bytes }) => LogEntry.decode(bytes).event?.event_type);
      const isEnd = (event: (typeof loops)[number]) =>
        event?.$case === "devLoopEvent" && event.value.status !== "In Progress";
      const end = loops.findIndex((event, index) => index >= v1 && isEnd(event));
      const next = recording.messages.v1[v1];
      const wokeUp = next !== undefined && next.at - Date.parse(t) < 1_000;
      if (wokeUp) await fake.playUntil({ v1: end + 1 });
    }
    await until(async () => (await executed()) === steps, { message: `${steps} Execute steps` });
  }

  async function executed(): Promise<number> {
    const accepted = (await stack.events()).filter(({ event }) => event.kind === "control.accepted");
    return accepted.filter(
      ({ event }) =>
        event.detail?.$case === "control" && event.detail.value.forwarded_method === "/proto.SkaffoldService/Execute",
    ).length;
  }

  async function compareState(file: string): Promise<void> {
    const name = `${scenario}/${file}`;
    const api = file.startsWith("v1") ? "v1" : "v2";
    const recorded = JSON.parse(readFileSync(join(folder, file), "utf8")) as JsonObject;
    const desc = messageType(api === "v1" ? "proto.State" : "proto.v2.State");
    const expected = canonical(isOld ? withDefaults(desc, recorded) : recorded);
    const method = api === "v1" ? "/proto.SkaffoldService/GetState" : "/proto.v2.SkaffoldV2Service/GetState";
    const answer = async () => {
      const { code, bytes } = await client.unary(method);
      expect(code).toBe(0);
      return canonical(toGatewayJson(desc, bytes));
    };
    const reason = otherStates[name];
    if (reason === undefined) {
      // At rest: facts that no event reports (flags, the fields of a version) come with the tap's next call of
      // GetState.
      const isRight = async () => expect(await answer()).toEqual(expected) ?? true;
      await until(isRight, { message: name }).catch(({ cause }) => Promise.reject(cause));
    } else expect(await answer(), reason).not.toEqual(expected);
    const overGrpc = await answer();
    const overHttp = canonical((await (await fetch(`http://${stack.http}/${api}/state`)).json()) as JsonObject);
    expect(overHttp).toEqual(overGrpc);
  }

  async function compareCall(call: RecordedHttpCall): Promise<void> {
    const other = otherAnswers[call.label];
    if (call.method === undefined) {
      const request =
        call.requestBase64?.startsWith("(") === true
          ? Buffer.alloc(5_242_885)
          : Buffer.from(call.requestBase64 ?? "", "base64");
      const { code, message } = await client.unary(call.path, request);
      const recordedCode = Number(call.headers?.["grpc-status"] ?? 0);
      const served = /Reflection|Health/.test(call.path);
      if (served) return;
      expect({ label: call.label, path: call.path, code }).toEqual({
        label: call.label,
        path: call.path,
        code: recordedCode,
      });
      if (!/unknown|grpc: /.test(decodeURIComponent(call.headers?.["grpc-message"] ?? ""))) {
        expect(message).toBe(decodeURIComponent(call.headers?.["grpc-message"] ?? ""));
      }
      return;
    }
    const answer = await stack.httpCall(
      call.method,
      call.path,
      call.requestHeaders ?? {},
      call.requestBody ?? undefined,
    );
    const what = `${call.label}: ${call.method} ${call.path} ${call.requestBody ?? ""}`;
    expect({ what, status: answer.status }).toEqual({ what, status: other?.status ?? call.status });
    if (other === undefined && call.body !== undefined && call.method !== "HEAD") {
      expect({ what, body: canonical(parsed(answer.body)) }).toEqual({ what, body: canonical(parsed(call.body)) });
    }
  }
}

type ReplayStep = {
  readonly at: number;
  readonly counts: { readonly v1: number; readonly v2: number };
  readonly state?: string;
  readonly call?: RecordedHttpCall;
};

/** Quiet GetState answers and calls, in the order in which they were made. */
function stepsOf(scenario: string, recording: RecordedUpstream): ReplayStep[] {
  const folder = join(fixtures, scenario);
  const before = (channel: "v1" | "v2", at: number) =>
    recording.messages[channel].filter((message) => happenedAt(recording, channel, message) <= at).length;
  const states = recording.states
    .filter(({ seenBefore, seenAfter }) => seenBefore === seenAfter)
    .map(({ api, at, seenBefore, file }) => ({
      at,
      counts: { v1: before("v1", at), v2: before("v2", at), ...(!isLateReader(recording) && { [api]: seenBefore }) },
      state: file,
    }));
  const calls = callsOf(folder)
    .filter((call) => !notRepeated.has(call.label) && !isElsewhere(recording, call))
    .map((call) => ({
      at: Date.parse(call.t),
      counts: {
        v1: call.seenBefore["grpc-v1-events"] ?? call.seenBefore["v1-events"] ?? 0,
        v2: call.seenBefore["grpc-v2-events"] ?? call.seenBefore["v2-events"] ?? 0,
      },
      call,
    }));
  return [...states, ...calls].sort((a, b) => a.at - b.at);
}

/** The recorder of 12c opened v2 only when all was over: the events' own times show what had happened when. */
function isLateReader({ name }: RecordedUpstream): boolean {
  return name === "12c-wait-for-connection";
}

function happenedAt(
  recording: RecordedUpstream,
  channel: "v1" | "v2",
  { at, bytes }: { at: number; bytes: Buffer },
): number {
  if (!isLateReader(recording)) return at;
  const { timestamp } = channel === "v1" ? LogEntry.decode(bytes) : Event.decode(bytes);
  return Number(timestamp?.seconds ?? 0n) * 1_000 + (timestamp?.nanos ?? 0) / 1e6;
}

/**
 * Calls that are irrelevant to Tapedeck: GetState is compared from its own files; the HTTP server of 0.40 had other
 * bodies and paths for errors than every later one; 12b's call found the port closed.
 */
function isElsewhere({ generation, name }: RecordedUpstream, { path, method, status }: RecordedHttpCall): boolean {
  if (name === "12b-skaffold-run-one-shot" || path.endsWith("/GetState")) return true;
  return generation === "A" && !(method === "POST" && status === 200);
}

function callsOf(folder: string): RecordedHttpCall[] {
  try {
    return readFileSync(join(folder, "calls.ndjson"), "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as RecordedHttpCall);
  } catch {
    return [];
  }
}

/**
 * Events that Handle calls put into v1, and after how many events: they are marked injected, and are not Skaffold's
 * operations.
 */
function injectedBy(folder: string): InjectedEvent[] {
  return callsOf(folder)
    .filter(({ path, status }) => path === "/v1/events/handle" && status === 200)
    .map(({ requestBody, seenBefore }) => ({
      body: parsed(requestBody ?? ""),
      after: seenBefore["v1-events"] ?? 0,
    }));
}

function resultsOf(file: string): JsonObject[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .flatMap((line) => {
        const { result } = JSON.parse(line) as { result?: JsonObject };
        return result === undefined ? [] : [result];
      });
  } catch {
    return [];
  }
}

function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

/** Builder entries have a random order per process, and Go's protobuf sometimes writes a no-break space. */
function canonical(value: JsonValue): JsonValue {
  if (typeof value === "string") return value.replace(/\u00a0/g, " ");
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const plain = canonical(inner);
      const isBuilders = name === "builders" && Array.isArray(plain);
      return [name, isBuilders ? [...plain].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : plain];
    }),
  );
}
