import { gunzipSync } from "node:zlib";
import { Status } from "@tapedeck/proto/google/rpc/status";
import {
  ExportTraceServiceRequest,
  ExportTraceServiceResponse,
} from "@tapedeck/proto/opentelemetry/proto/collector/trace/v1/trace_service";
import { Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { endOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { expect, it } from "vitest";
import type { ReceivedAnswer } from "../../target/http-target.ts";
import { firstOpening } from "../../testing/no-reader.ts";
import type { FormattedSink } from "../format.ts";
import { otlp } from "./otlp.ts";
import { maxEventsRead, readBack } from "./read-back.ts";
import { epoch, listedLog } from "./testing/listed-log.ts";

const source = "default/alice/shop/skaffold";
const never = new AbortController().signal;

const eventOf = (kind: string, loop: number, more: Partial<Event> = {}) =>
  Event.fromPartial({
    id: `s.v1.${kind}.${loop}.${more.subject ?? ""}`,
    source,
    session: "s",
    channel: "v1",
    kind,
    outcome: kind.endsWith("failed") ? Outcome.OUTCOME_FAILED : Outcome.OUTCOME_NONE,
    occurred_at: { seconds: 1_700_000_000n + BigInt(loop), nanos: 0 },
    operation: { kind: kind.split(".")[0] ?? "", subject: more.subject ?? "", runner: 1, loop },
    ...more,
  });

const loopOf = (loop: number, steps = 1) => [
  eventOf("loop.started", loop),
  ...Array.from({ length: steps }, (_, index) => eventOf("build.cached", loop, { subject: `a${index}` })),
  eventOf("loop.succeeded", loop),
];

/** v2's report of the loop's end. */
const endOnV2 = (loop: number, verb = "Succeeded") => {
  const value = { what: "taskEvent", status: verb, task_id: `DevLoop-${loop}`, subtask_id: "" };
  const operation = { kind: "loop", subject: "", runner: 1, loop };
  return eventOf("mirror.received", loop, { channel: "v2", operation, detail: { $case: "mirror", value } });
};

const started = eventOf("session.started", 0, { operation: undefined });

/** A sink that reads each run from the log: it follows nothing but ends. */
const reading: FormattedSink = {
  workspace: "default",
  name: "traces",
  mode: "batched",
  filter: { kinds: ["loop.succeeded"] },
  live: false,
  secret: undefined,
  epoch,
  page: "http://tapedeck.example",
};
const following: FormattedSink = { ...reading, filter: {} };

async function requestsOf(sink: FormattedSink, log: ReturnType<typeof listedLog>, kinds?: string) {
  const events = log.recorded
    .filter(({ event }) => kinds === undefined || event.kind === kinds)
    .map((recorded) => ({ recorded, position: formatPosition({ epoch, offset: recorded.offset }) }));
  const opening = { ...firstOpening, lateMs: 50 };
  const requests = await otlp.open(sink, log.reader, opening).requests(events, never);
  return requests.map(({ body, covers }) => ({
    covers,
    traces: ExportTraceServiceRequest.decode(gunzipSync(body)).resource_spans.map(
      ({ scope_spans }) => scope_spans[0]?.spans.map(({ name }) => name) ?? [],
    ),
  }));
}

it("reads a loop back by ranges that grow until its beginning, and not the log", async () => {
  const loops = Array.from({ length: 500 }, (_, index) => loopOf(index + 1, 8));
  const log = listedLog([started, ...loops.flat()]);
  const last = log.recorded.at(-1);
  const near = await readBack(
    log.reader,
    {
      workspace: "default",
      source,
      kinds: ["loop.*"],
      until: last?.offset ?? endOf(0),
      isBeginning: ({ kind, operation }) => kind === "loop.started" && operation?.loop === 450,
      isKept: ({ operation }) => operation?.loop === 450,
    },
    never,
  );
  expect([near.isWhole, near.events.length]).toEqual([true, 10]);
  expect(log.reads.map(({ count }) => count)).toEqual([128, 1_024]);
});

it("remembers the runs that it follows, and reads none of them", async () => {
  const log = listedLog([started, ...loopOf(1), endOnV2(1), ...loopOf(2), endOnV2(2)]);
  const [request] = await requestsOf(following, log);
  expect(request).toEqual({ covers: 9, traces: Array(2).fill(["RUN shop", "build a0"]) });
  expect(log.reads).toEqual([]);
});

/** v2's report of the loop, before or after v1's. */
const twoChannels = (loop: number, isV2First: boolean) => {
  const step = (kind: string) => eventOf(kind, loop, { id: `s.v2.${kind}.${loop}`, channel: "v2" });
  const onV2 = [step("render.started"), step("render.succeeded"), endOnV2(loop)];
  const onV1 = loopOf(loop);
  return isV2First ? [...onV2, ...onV1] : [...onV1, ...onV2];
};

it("has the steps that v2 reports before v1's start of the loop, remembered or read", async () => {
  const quiet = Array.from({ length: 300 }, (_, index) => eventOf("log.written", 0, { id: `s.v1.log.${index}` }));
  const events = [started, ...twoChannels(1, true), ...quiet, ...twoChannels(2, true), ...twoChannels(3, false)];
  const traces = Array(3).fill(["RUN shop", "render", "build a0"].toSorted());
  for (const [sink, kinds] of [[following], [reading, "loop.succeeded"]] as const) {
    const requests = await requestsOf(sink, listedLog(events), kinds);
    expect(requests.flatMap((one) => one.traces).map((names) => names.toSorted())).toEqual(traces);
  }
});

it("gives a loop that began just before the pass from the log, with what v2 reported first", async () => {
  const log = listedLog([started, ...twoChannels(1, true), ...twoChannels(2, true)]);
  const events = log.recorded
    .slice(3)
    .map((recorded) => ({ recorded, position: formatPosition({ epoch, offset: recorded.offset }) }));
  const [request] = await otlp.open(following, log.reader, { ...firstOpening, lateMs: 50 }).requests(events, never);
  const { resource_spans } = ExportTraceServiceRequest.decode(gunzipSync(request?.body ?? Buffer.alloc(0)));
  expect(resource_spans.map(({ scope_spans }) => scope_spans[0]?.spans.length)).toEqual([3, 3]);
});

it("reads a run that is too large to be remembered, and counts what it leaves out", async () => {
  const log = listedLog([started, ...loopOf(1, maxEventsRead + 10)]);
  const [request] = await requestsOf(following, log);
  expect(request?.traces[0]?.length).toBe(5_001);
  expect(log.reads.length).toBeGreaterThan(0);
});

it("sends the runs that a long session leaves open, soon, however many have ended in it", async () => {
  const ofPod = (pod: string, kind: string, more: Partial<Event> = {}) =>
    eventOf(kind, 0, {
      source: "default/host/rack/rkt",
      subject: pod,
      operation: { kind: "pod", subject: pod, runner: 0, loop: 0 },
      ...more,
    });
  const ended = Array.from({ length: 15_000 }, (_, index) => [
    ofPod(`p${index}`, "pod.started"),
    ofPod(`p${index}`, "pod.exited", { outcome: Outcome.OUTCOME_SUCCEEDED }),
  ]).flat();
  const own = { ...started, source: "default/host/rack/rkt" };
  const events = [
    own,
    ofPod("first", "pod.started"),
    ...ended,
    ofPod("last", "pod.started"),
    { ...own, kind: "session.ended" },
  ];
  const log = listedLog(events);
  const before = process.cpuUsage();
  const [request] = await requestsOf(reading, log, "session.ended");
  const { user } = process.cpuUsage(before);
  expect(request?.traces).toEqual([["RUN rack"], ["RUN rack"]]);
  // Comparing each run with each event took 28 s.
  expect(user / 1_000).toBeLessThan(5_000);
});

it("goes on after what the log has dropped", async () => {
  const loops = Array.from({ length: 40 }, (_, index) => loopOf(index + 1, 8)).flat();
  const log = listedLog([started, ...loops], { firstKept: 399 });
  const requests = await requestsOf(reading, log, "loop.succeeded");
  const traces = requests.flatMap((one) => one.traces);
  expect(traces.at(-1)).toEqual(["RUN shop", "build a6", "build a7"]);
});

it("sends nothing of a session that is erased while its last event is delivered", async () => {
  for (const sink of [reading, following]) {
    const log = listedLog([started, ...loopOf(1)]);
    log.erase("s");
    expect(await requestsOf({ ...sink, filter: reading.filter }, log, "loop.succeeded")).toEqual([]);
  }
});

it("has up to 1,000 spans in a request, whole traces, and with structured one trace", async () => {
  const log = listedLog([started, ...Array.from({ length: 5 }, (_, index) => loopOf(index + 1, 399)).flat()]);
  const batched = await requestsOf(following, log);
  expect(batched.map(({ traces }) => traces.map(({ length }) => length))).toEqual([[400, 400], [400, 400], [400]]);
  const structured = await requestsOf({ ...following, mode: "structured" }, log);
  expect(structured.map(({ traces }) => traces.length)).toEqual(Array(5).fill(1));
  expect(structured.at(-1)?.covers).toBe(log.recorded.length);
});

it.each<[string, number, string | undefined, Uint8Array, string | undefined]>([
  ["some spans", 200, "application/x-protobuf", rejected(2n, "too old"), "2 spans were rejected: too old"],
  ["one span, without a reason", 200, "application/x-protobuf", rejected(1n, ""), "1 span was rejected"],
  ["no span, with a warning", 200, "application/x-protobuf; a=b", rejected(0n, "soon too old"), undefined],
  ["nothing", 200, "application/x-protobuf", Buffer.alloc(0), undefined],
  ["nothing, in JSON", 200, "application/json", Buffer.from("{}"), undefined],
  ["nothing, in JSON that says so", 200, "application/json", inJson({}), undefined],
  ["nothing, in bytes that are no message", 200, "application/x-protobuf", Buffer.from([255]), undefined],
  [
    "spans, in JSON",
    200,
    "application/json; a=b",
    inJson({ rejectedSpans: "3", errorMessage: "old" }),
    "3 spans were rejected: old",
  ],
  ["a span, in JSON with a number", 200, "application/json", inJson({ rejectedSpans: 1 }), "1 span was rejected"],
  ["a request, in JSON", 400, "application/json", inJson({ rejectedSpans: 1 }), undefined],
  ["a request", 400, "application/x-protobuf", refusal("no tenant"), "no tenant"],
  ["a request, in text", 400, "text/plain", Buffer.from("no"), undefined],
  ["a request, in bytes that are no message", 400, "application/x-protobuf", Buffer.from([255]), undefined],
])("finds in an answer that refuses %s what it says", (_, status, contentType, body, error) => {
  const answer: ReceivedAnswer = {
    type: "answer",
    status,
    contentType,
    retryAfter: undefined,
    body: Buffer.from(body),
  };
  expect(otlp.errorIn?.(answer)).toBe(error);
});

it.each(["application/x-protobuf", "application/json"])(
  "takes an answer in %s for a refusal that is too long to be read, and shows its beginning",
  (contentType) => {
    const message = `span 1 is too old, ${"span 2 is, too, ".repeat(2_000)}`;
    const whole =
      contentType === "application/json"
        ? inJson({ rejectedSpans: "3", errorMessage: message })
        : Buffer.from(rejected(3n, message));
    const body = whole.subarray(0, 16_384);
    const answer = { type: "answer", status: 200, contentType, retryAfter: undefined, body, isLong: true } as const;
    expect(otlp.errorIn?.(answer)).toMatch(
      /^the answer is too long to be read, and may reject spans: .*span 1 is too old/s,
    );
    expect(otlp.errorIn?.({ ...answer, status: 503 })).toBeUndefined();
  },
);

function inJson(partialSuccess: object): Buffer {
  return Buffer.from(JSON.stringify({ partialSuccess }));
}

function rejected(rejected_spans: bigint, error_message: string): Uint8Array {
  const partial_success = { rejected_spans, error_message };
  return ExportTraceServiceResponse.encode(ExportTraceServiceResponse.fromPartial({ partial_success })).finish();
}

function refusal(message: string): Uint8Array {
  return Status.encode(Status.fromPartial({ code: 3, message })).finish();
}
