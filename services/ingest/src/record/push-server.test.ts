import { setImmediate } from "node:timers/promises";
import { credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { LogEntry, State } from "@tapedeck/proto/skaffold/v1/skaffold";
import {
  type ControlAnswer,
  ControlCall,
  ControlReply,
  type Item,
  type PushRequest,
  type PushResponse,
  RecorderClient,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlSubject } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { startTestNats, type TestNats } from "@tapedeck/shared/testing/nats";
import { silentConnection } from "@tapedeck/shared/testing/silent-connection";
import { until } from "@tapedeck/shared/testing/until";
import { timestampNow, timestampOfMs } from "@tapedeck/shared/time/timestamp";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readConfig } from "../config.ts";
import { type Ingest, startIngest } from "../ingest.ts";
import { framesOf, kindsOf, openLogReader, skaffoldSource, testLogger } from "../testing/ingest-harness.ts";

let nats: TestNats;
let logReader: Awaited<ReturnType<typeof openLogReader>>;
let ingest: Ingest;

beforeAll(async () => {
  nats = await startTestNats();
  logReader = await openLogReader(nats.url);
  const env = {
    TAPEDECK_NATS_URL: nats.url,
    TAPEDECK_INGEST_GRPC_PORT: "0",
    TAPEDECK_INGEST_HEALTH_PORT: "0",
    TAPEDECK_SERVICES_KEY: "key",
  };
  ingest = await startIngest(readConfig({ env }), testLogger);
  const [host, port] = ingest.addresses.health.split(":");
  await until(async () => (await fetch(`http://${host}:${port}/readyz`)).ok, { message: "ingest to be ready" });
});

afterAll(async () => {
  await ingest[Symbol.asyncDispose]();
  await logReader[Symbol.asyncDispose]();
  await nats[Symbol.asyncDispose]();
});

function push({ key = "key", workspace, developer }: { key?: string; workspace?: string; developer?: string } = {}) {
  const client = new RecorderClient(ingest.addresses.grpc, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set("tapedeck-key", key);
  if (workspace !== undefined) metadata.set("tapedeck-workspace", workspace);
  if (developer !== undefined) metadata.set("tapedeck-developer", developer);
  const call = client.push(metadata);
  const responses: NonNullable<PushResponse["body"]>[] = [];
  let error: ServiceError | undefined;
  let ended = false;
  call.on("data", ({ body }: PushResponse) => body !== undefined && responses.push(body));
  call.on("error", (cause: ServiceError) => {
    error = cause;
  });
  call.on("end", () => {
    ended = true;
  });
  const write = (body: PushRequest["body"]) => call.write({ body });
  return {
    hello(developer: string, { tap = "T", upstream = "skaffold", first_index = 1n } = {}) {
      const labels = { branch: "main" };
      write({
        $case: "hello",
        value: { developer, project: "shop", upstream, tap, labels, redact: "off", first_index, settings: {} },
      });
    },
    item(index: bigint, what: Item["what"], connection = "C1", at = { seconds: 1_800_000_000n + index, nanos: 0 }) {
      write({ $case: "item", value: { index, connection, at, what } });
    },
    frame(index: bigint, bytes: Uint8Array, connection = "C1") {
      this.item(
        index,
        { $case: "frame", value: { channel: "v1", bytes: Buffer.from(bytes), more: false } },
        connection,
      );
    },
    answer: (value: ControlAnswer) => write({ $case: "control_answer", value }),
    end: () => call.end(),
    responses,
    committed: () => responses.flatMap((body) => (body.$case === "committed" ? [body.value.index] : [])).at(-1),
    failure: () => until(() => error, { message: "the stream to fail" }),
    ended: () => until(() => ended, { message: "the stream to end" }),
    welcome: () => until(() => responses.find(({ $case }) => $case === "welcome"), { message: "the welcome" }),
    [Symbol.dispose]() {
      call.on("error", () => {});
      call.cancel();
      client.close();
    },
  };
}

const dialled: Item["what"] = { $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1"] } };
const text = (s: string) => Buffer.from(s);

it("a tap elsewhere is recorded, and learns how far", async () => {
  using tap = push();
  tap.hello("Alice Smith");
  expect(await tap.welcome()).toMatchObject({ value: { source: "default/alice-smith/shop/skaffold", committed: 0n } });
  tap.item(1n, dialled);
  tap.frame(2n, text("garbage"));
  tap.frame(3n, text("more of it"));
  tap.end();
  await tap.ended();
  expect(tap.committed()).toBe(3n);
  const events = await logReader.events(skaffoldSource("alice-smith"));
  expect(framesOf(events, "v1").map(String)).toEqual(["garbage", "more of it"]);
  expect(events.filter(({ kind }) => kind === "upstream.unreadable")).toHaveLength(2);
  expect(events.find(({ kind }) => kind === "source.added")?.detail).toMatchObject({
    value: { developer_name: "Alice Smith", project_name: "shop" },
  });
});

it("the gateway names the workspace", async () => {
  using tap = push({ workspace: "acme" });
  tap.hello("bob");
  expect(await tap.welcome()).toMatchObject({ value: { source: "acme/bob/shop/skaffold" } });
});

it("a tap whose developer the gateway names is that one's, whatever it says", async () => {
  using tap = push({ workspace: "acme", developer: "dora" });
  tap.hello("bob");
  expect(await tap.welcome()).toMatchObject({ value: { source: "acme/dora/shop/skaffold" } });
  tap.item(1n, dialled);
  tap.end();
  await tap.ended();
  const source = sourceName({ workspace: "acme", developer: "dora", project: "shop", upstream: "skaffold" });
  await using acme = await openLogReader(nats.url, "acme");
  const [added] = await acme.events(source);
  expect(added?.detail).toMatchObject({ value: { developer_name: "dora" } });
});

it("another tap is turned away, the same one takes over at once", async () => {
  using first = push();
  first.hello("carol", { tap: "T1" });
  await first.welcome();
  using other = push();
  other.hello("carol", { tap: "T2" });
  expect(await other.failure()).toMatchObject({ code: 6, details: expect.stringContaining("recorded by another tap") });

  first.item(1n, dialled);
  using again = push();
  again.hello("carol", { tap: "T1" });
  await again.welcome();
  expect(await first.failure()).toMatchObject({ code: 14 });
  again.item(1n, dialled);
  again.end();
  await again.ended();
  expect(kindsOf(await logReader.events(skaffoldSource("carol")))).toEqual(["source.added", "upstream.connected"]);
});

it("a tap that comes again pushes what it does not know to be recorded, and nothing is there twice", async () => {
  for (let round = 0; round < 3; round++) {
    using tap = push();
    tap.hello("dave");
    await tap.welcome();
    tap.item(1n, dialled);
    for (let index = 2n; index < 10n; index++) tap.frame(index, text("the same"));
    for (let index = 10n; index < 12n + BigInt(round); index++) tap.frame(index, text(`line ${index}`));
    tap.end();
    await tap.ended();
  }
  const frames = framesOf(await logReader.events(skaffoldSource("dave")), "v1").map(String);
  expect(frames).toEqual([...Array(8).fill("the same"), "line 10", "line 11", "line 12", "line 13"]);
});

it.each([
  ["without the key", { key: "guess" }, {}, 16],
  ["an upstream that nobody knows", {}, { upstream: "make" }, 3],
  ["a tap without an id", {}, { tap: "" }, 3],
])("%s is refused", async (_, context, hello, code) => {
  using tap = push(context);
  tap.hello("eve", hello);
  expect(await tap.failure()).toMatchObject({ code });
});

const piece = (bytes: number, more: boolean, channel = "v1"): Item["what"] => ({
  $case: "frame",
  value: { channel, bytes: Buffer.alloc(bytes), more },
});
const missing: Item["what"] = { $case: "dropped", value: { channel: "", count: 0n, bytes: 0n, reason: "crash" } };
type Pushed = Parameters<ReturnType<typeof push>["item"]>;

it.each<[string, string, readonly Pushed[]]>([
  [
    "comes late",
    "item 1 came where 3 was expected",
    [
      [1n, dialled],
      [2n, piece(1, false)],
      [1n, dialled],
    ],
  ],
  [
    "comes early",
    "item 3 came where 2 was expected",
    [
      [1n, dialled],
      [3n, piece(1, false)],
    ],
  ],
  [
    "comes early after a loss that was reported",
    "item 7 came where 5",
    [
      [4n, missing],
      [7n, dialled],
    ],
  ],
  [
    "is not the rest of what it goes on with",
    "not the rest",
    [
      [1n, piece(1, true)],
      [1n, piece(1, false, "v2")],
    ],
  ],
  [
    "leaves something in the middle",
    "item 2 came where 1",
    [
      [1n, piece(1, true)],
      [2n, piece(1, false)],
    ],
  ],
  ["comes in no year", "at is not a time", [[1n, dialled, "C1", { seconds: 10n ** 15n, nanos: 0 }]]],
  ["comes at no time", "at is not a time", [[1n, dialled, "C1", { seconds: 1n, nanos: -1 }]]],
  ["has an endless id", "id is too long", [[1n, dialled, "C".repeat(65)]]],
])("a push that %s is refused", async (_, details, items) => {
  using tap = push();
  tap.hello("frank");
  await tap.welcome();
  for (const item of items) tap.item(...item);
  expect(await tap.failure()).toMatchObject({ code: 3, details: expect.stringContaining(details) });
});

it("a frame without an end is refused before it fills the memory", async () => {
  using tap = push();
  tap.hello("endless");
  await tap.welcome();
  for (let pieces = 0; pieces <= 64; pieces++) tap.item(1n, piece(1024 * 1024, true));
  expect(await tap.failure()).toMatchObject({ code: 3, details: "item 1 has more than 67108864 bytes" });
});

it("a frame of empty pieces without an end is refused", async () => {
  using tap = push();
  tap.hello("hollow");
  await tap.welcome();
  for (let pieces = 0; pieces <= 4_096; pieces++) tap.item(1n, piece(0, true));
  expect(await tap.failure()).toMatchObject({ code: 3, details: "item 1 has more than 4096 pieces" });
});

it("labels without an end are refused", async () => {
  using tap = push();
  tap.hello("x".repeat(300_000));
  expect(await tap.failure()).toMatchObject({ code: 3, details: expect.stringContaining("262144 bytes") });
});

it("a caller that pushes nothing learns whether it would be let in, and nothing is recorded", async () => {
  using tap = push();
  tap.end();
  await tap.ended();
  expect(tap.responses).toEqual([]);
  using stranger = push({ key: "guess" });
  stranger.end();
  expect(await stranger.failure()).toMatchObject({ code: 16 });
});

it("the demo refuses what is pushed, and nobody who only asks", async () => {
  using asking = push({ workspace: "demo" });
  asking.end();
  await asking.ended();
  using tap = push({ workspace: "demo" });
  tap.hello("dora");
  expect(await tap.failure()).toMatchObject({ code: 7, details: expect.stringContaining("this is the demo") });
});

it("an item before hello is refused", async () => {
  using tap = push();
  tap.item(1n, dialled);
  expect(await tap.failure()).toMatchObject({ code: 3 });
});

it("an answer that is too large for whoever asked is an error for them alone", async () => {
  using tap = push();
  tap.hello("talkative");
  await tap.welcome();
  tap.item(1n, dialled);
  await until(() => tap.committed() === 1n, { message: "the connection to be known" });
  const call = ControlCall.create({ method: "/x", forwarded_method: "/x", who: "a test" });
  const pending = logReader.nats.request(
    controlSubject(skaffoldSource("talkative")),
    ControlCall.encode(call).finish(),
    {
      timeout: 60_000,
    },
  );
  const asks = await until(() => tap.responses.find(({ $case }) => $case === "control"), { message: "the request" });
  if (asks.$case !== "control") throw new Error("not a request");
  tap.answer({ call: asks.value.call, code: 0, message: "", response: Buffer.alloc(9 * 1024 * 1024) });
  expect(ControlReply.decode((await pending).data)).toMatchObject({ code: 14 });
});

it("a frame that is too large for the log does not end the recording", async () => {
  using tap = push();
  tap.hello("large");
  await tap.welcome();
  tap.item(1n, dialled);
  tap.frame(2n, text("garbage"));
  for (const more of [true, true, false]) {
    tap.item(3n, { $case: "described", value: { channel: "v1", state: Buffer.alloc(3 * 1024 * 1024), more } });
  }
  tap.item(4n, { $case: "closed", value: { reason: "x".repeat(9 * 1024 * 1024), process_ended: true } });
  tap.end();
  await tap.ended();
  expect(tap.committed()).toBe(4n);
  const kinds = kindsOf(await logReader.events(skaffoldSource("large")));
  expect(kinds.slice(-2)).toEqual(["upstream.lost", "session.ended"]);
});

it("a state that came in pieces is recorded whole", async () => {
  using tap = push();
  tap.hello("stately");
  await tap.welcome();
  tap.item(1n, dialled);
  tap.frame(2n, text("garbage"));
  const state = Buffer.from(State.encode(State.fromPartial({ buildState: { artifacts: manyArtifacts } })).finish());
  const half = state.length / 2;
  for (const [part, more] of [
    [state.subarray(0, half), true],
    [state.subarray(half), false],
  ] as const) {
    tap.item(3n, { $case: "described", value: { channel: "v1", state: part, more } });
  }
  tap.item(4n, { $case: "closed", value: { reason: "cut", process_ended: true } });
  tap.end();
  await tap.ended();
  const events = await logReader.events(skaffoldSource("stately"));
  const described = events.find(({ kind }) => kind === "session.described")?.detail;
  expect(described?.$case === "session_detail" && described.value.states.v1?.equals(state)).toBe(true);
});

const manyArtifacts = Object.fromEntries(
  Array.from({ length: 40_000 }, (_, index) => [`artifact-${index}`, "Complete"]),
);

it("a control call that is too large for the log is refused", async () => {
  using tap = push();
  tap.hello("eager");
  await tap.welcome();
  tap.item(1n, dialled);
  await until(() => tap.committed() === 1n, { message: "the connection to be known" });
  const request = Buffer.alloc(4_150_000);
  const call = ControlCall.create({ method: "/x", request, forwarded_method: "/x", forwarded_request: request });
  const subject = controlSubject(skaffoldSource("eager"));
  const reply = await logReader.nats.request(subject, ControlCall.encode(call).finish(), { timeout: 60_000 });
  expect(ControlReply.decode(reply.data)).toMatchObject({ code: 8, reason: "limit_exceeded" });
  tap.end();
  await tap.ended();
});

function startLimited(limits: Readonly<Record<string, string>>): Promise<Ingest> {
  const ports = { TAPEDECK_INGEST_GRPC_PORT: "0", TAPEDECK_INGEST_HEALTH_PORT: "0" };
  return startIngest(readConfig({ env: { TAPEDECK_NATS_URL: nats.url, ...ports, ...limits } }), testLogger);
}

it("a connection too many is closed at once", async () => {
  await using narrow = await startLimited({ TAPEDECK_LIMITS_GRPC_CONNECTIONS: "1", TAPEDECK_LIMITS_ARRIVAL: "10m" });
  using first = await silentConnection(narrow.addresses.grpc);
  using second = await silentConnection(narrow.addresses.grpc);
  await until(second.isOver, { message: "the second to be closed" });
  expect(first.isOver()).toBe(false);
});

it("a connection that asks for nothing in a while is closed", async () => {
  await using hasty = await startLimited({ TAPEDECK_LIMITS_ARRIVAL: "100ms" });
  using silent = await silentConnection(hasty.addresses.grpc);
  await until(silent.isOver, { message: "it to be closed" });
});

it("the frames that an upstream repeats are sorted even if ingest is held up meanwhile", async () => {
  using tap = push();
  tap.hello("Held Up");
  await tap.welcome();
  const at = timestampNow();
  const [later, earlier] = [2_000, 1_000].map((ms) =>
    Buffer.from(LogEntry.encode(LogEntry.fromPartial({ timestamp: timestampOfMs(ms), entry: `${ms}` })).finish()),
  ) as [Buffer, Buffer];
  const send = async (index: bigint, bytes: Buffer) => {
    tap.item(index, { $case: "frame", value: { channel: "v1", bytes, more: false } }, "C1", at);
    // The client writes to its socket at the end of this turn.
    await setImmediate();
  };
  tap.item(1n, dialled, "C1", at);
  await send(2n, later);
  for (let turn = 0; turn < 100; turn += 1) await setImmediate();
  await send(3n, earlier);
  for (const end = performance.now() + 400; performance.now() < end; );
  tap.end();
  await tap.ended();
  expect(framesOf(await logReader.events(skaffoldSource("held-up")), "v1")).toEqual([earlier, later]);
});
