import { gunzipSync } from "node:zlib";
import { jetstreamManager } from "@nats-io/jetstream";
import { conventions, violationsOf } from "@tapedeck/gateway/sinks/format/otlp/testing/conventions";
import { type ReceivedSpan, spansOf } from "@tapedeck/gateway/sinks/testing/received-spans";
import { type Receiver, startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { type SinkHarness, startSinkHarness } from "@tapedeck/gateway/sinks/testing/sink-harness";
import {
  ExportTraceServiceRequest,
  ExportTraceServiceResponse,
} from "@tapedeck/proto/opentelemetry/proto/collector/trace/v1/trace_service";
import { rktSession } from "@tapedeck/query/testing/rkt-scenario";
import { type Scenario, scenario, writeTogether } from "@tapedeck/query/testing/scenario";
import { vagrantSession } from "@tapedeck/query/testing/vagrant-scenario";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceName } from "@tapedeck/shared/source";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";

let harness: SinkHarness;
let receiver: Receiver;
let gateway: Awaited<ReturnType<SinkHarness["gateway"]>>;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  harness = stack.use(await startSinkHarness());
  receiver = stack.use(await startReceiver());
  gateway = stack.use(await harness.gateway({ GATEWAY_PAGE_URL: "https://tapedeck.example" }));
});
afterAll(() => stack.disposeAsync());

let developers = 0;

/** Each test has a source of its own, and a sink that gets nothing else. */
function newSource(upstream: "skaffold" | "vagrant" | "rkt" = "skaffold") {
  developers += 1;
  return sourceName({ workspace: "default", developer: `dev${developers}`, project: "shop", upstream });
}

async function addSink({ source }: Scenario, more: object = {}, name = `sink${developers}`) {
  const url = `http://127.0.0.1:${receiver.port}/${name}`;
  const { status, body } = await gateway.add(name, { url }, { format: "otlp", filter: { sources: [source] }, ...more });
  expect([status, body.error ?? null]).toEqual([201, null]);
  const spans = () =>
    receiver.requests.filter(({ path }) => path === `/${name}`).flatMap((request) => spansOf(request));
  return {
    name,
    spans,
    requests: () => receiver.requests.filter(({ path }) => path === `/${name}`),
    async traces(count: number): Promise<readonly ReceivedSpan[]> {
      const roots = () => spans().filter(({ span }) => span.kind === server);
      await until(() => roots().length >= count, { message: `${count} traces at ${name}` });
      return spans();
    },
  };
}

/** Every span that has ended is one of the conventions. */
afterEach(() => {
  const spans = receiver.requests
    .flatMap((request) => spansOf(request))
    .filter(({ span }) => span.end_time_unix_nano > 0n);
  expect(spans.flatMap(violationsOf)).toEqual([]);
});

const server = 2;
const internal = 1;
const write = (script: Scenario) => writeTogether(harness.log, script.events, 3);
const session = "01JCXK3V8QZ6D7N2M4P5R6S7T8";

/** A session with loops: the first succeeds, the second fails. */
function twoLoops(script: Scenario, id = session) {
  const skaffold = script.session(id);
  skaffold.started({ branch: "main", commit: "abc123", remote: "https://github.com/acme/shop", host: "laptop" });
  skaffold.configured();
  skaffold.loopStarted(1_000);
  skaffold.cached("api", 1_010);
  skaffold.build("web", "started", 1_020);
  skaffold.text("compiling", 1_030);
  skaffold.build("web", "succeeded", 3_000);
  skaffold.phase("deploy", "started", 3_010);
  skaffold.phase("deploy", "succeeded", 4_000);
  skaffold.loopEnded("succeeded", 4_010);
  skaffold.loopStarted(10_000);
  skaffold.build("web", "started", 10_010);
  skaffold.build("web", "failed", 12_000);
  skaffold.loopEnded("failed", 12_010);
  return skaffold;
}

const shortOf = (spans: readonly ReceivedSpan[]) =>
  spans.map(({ name, attributes }) => [
    name,
    attributes["cicd.pipeline.result"] ?? attributes["cicd.pipeline.task.run.result"],
  ]);

it("sends a loop as a trace when it ends: its root, with its steps as children", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  twoLoops(script);
  await write(script);
  const spans = await sink.traces(2);
  expect(shortOf(spans)).toEqual([
    ["RUN shop", "success"],
    ["build api", "skip"],
    ["build web", "success"],
    ["deploy", "success"],
    ["RUN shop", "failure"],
    ["build web", "failure"],
  ]);
  const [root, , build, , failed, failedBuild] = spans;
  const request = sink.requests()[0];
  const sent = request && ExportTraceServiceRequest.decode(gunzipSync(request.bytes)).resource_spans[0];
  expect([sent?.schema_url, sent?.scope_spans[0]?.schema_url]).toEqual(Array(2).fill(conventions.schemaUrl));
  expect(request?.headers).toMatchObject({ "content-type": "application/x-protobuf", "content-encoding": "gzip" });
  expect([root?.span.kind, build?.span.kind]).toEqual([server, internal]);
  expect(root?.parentId).toBe("");
  for (const child of spans.slice(1, 4)) expect([child.traceId, child.parentId]).toEqual([root?.traceId, root?.spanId]);
  expect(failedBuild).toMatchObject({ traceId: failed?.traceId, parentId: failed?.spanId });
  expect(failed?.traceId).not.toBe(root?.traceId);
  expect(Number(build && build.span.end_time_unix_nano - build.span.start_time_unix_nano)).toBe(1_980_000_000);
  expect(failedBuild?.attributes).toMatchObject({ "error.type": "BUILD_UNKNOWN" });
  expect(failedBuild?.span.status).toMatchObject({ code: 2, message: "web does not build" });
  expect(root?.resource).toMatchObject({
    "service.name": "skaffold",
    "cicd.pipeline.name": "shop",
    "cicd.pipeline.run.id": `${session}.1.1`,
    "cicd.pipeline.run.url.full": `https://tapedeck.example/loops/${session}.1.1`,
    "cicd.worker.id": "laptop",
    "vcs.repository.url.full": "https://github.com/acme/shop",
    "vcs.repository.name": "shop",
    "vcs.owner.name": "acme",
    "vcs.provider.name": "github",
    "vcs.ref.head.name": "main",
    "vcs.ref.head.revision": "abc123",
  });
  expect(build?.attributes["cicd.pipeline.task.run.url.full"]).toMatch(
    new RegExp(`^https://tapedeck.example/loops/${session}.1.1\\?step=[0-9a-z]+-[0-9a-z]+$`),
  );
});

it("links each loop with the one before and after", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  twoLoops(script);
  await write(script);
  const roots = (await sink.traces(2)).filter(({ span }) => span.kind === server);
  const linked = roots.map(({ span }) => span.links.map(({ span_id }) => Buffer.from(span_id).toString("hex")));
  const traceOf = (index: number) => Buffer.from(roots[index]?.span.links[0]?.trace_id ?? []).toString("hex");
  expect([traceOf(0), traceOf(1)]).toEqual([roots[1]?.traceId, roots[0]?.traceId]);
  expect(linked[0]).toEqual([roots[1]?.spanId]);
  expect(linked[1]?.[0]).toBe(roots[0]?.spanId);
  expect(linked[1]).toHaveLength(2);
});

it("gives the same spans again after a rewind", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  twoLoops(script);
  await write(script);
  const first = await sink.traces(2);
  await gateway.call("POST", `/${sink.name}/rewind`, { to: "start" });
  const all = await sink.traces(4);
  expect(all.slice(first.length).map(({ span }) => span)).toEqual(first.map(({ span }) => span));
});

/** Sessions of each upstream, with all that a run can be: whole, interrupted, unended, without loops. */
const everything = {
  skaffold(script: Scenario) {
    const skaffold = twoLoops(script);
    skaffold.loopStarted(20_000);
    skaffold.build("web", "started", 20_010);
    skaffold.loopStarted(21_000);
    skaffold.build("web", "started", 21_010);
    skaffold.ended("process ended", 22_000);
    const other = script.session("01JCXK3V8QZ6D7N2M4P5R6S7TB");
    other.started();
    other.configured();
    other.build("web", "started");
    other.build("web", "succeeded");
    other.ended("process ended", undefined, 0);
    return { kinds: ["loop.*", "session.ended"], traces: 5, spans: 12 };
  },
  vagrant(script: Scenario) {
    const vagrant = vagrantSession(session, script);
    vagrant.began();
    for (const [at, job] of ["J1", "J2", "J3"].entries()) {
      vagrant.queued(job, "up", { at: at * 100 });
      vagrant.started(job, { at: 1_000 + at * 100 });
    }
    vagrant.finished("J2", undefined, { at: 5_000 });
    vagrant.lost("J1", { at: 6_000 });
    vagrant.ended(7_000);
    return { kinds: ["command.finished", "session.ended"], traces: 3, spans: 6 };
  },
  rkt(script: Scenario) {
    const rkt = rktSession(session, script);
    rkt.began();
    for (const pod of ["p1", "p2"]) rkt.prepared(pod, ["web", "db"]);
    for (const pod of ["p1", "p2"]) rkt.started(pod);
    rkt.exited("p2", [0, 7]);
    rkt.ended();
    return { kinds: ["pod.exited", "session.ended"], traces: 2, spans: 6 };
  },
} as const;

it.each(["skaffold", "vagrant", "rkt"] as const)(
  "gives the same spans whether it has followed a run of %s or reads it from the log",
  async (upstream) => {
    const script = scenario(newSource(upstream));
    const { kinds, traces, spans } = everything[upstream](script);
    const sink = await addSink(script);
    // The steps are not among these, and neither is what a session begins with.
    const reading = await addSink(script, { filter: { sources: [script.source], kinds } }, `reading-${upstream}`);
    await write(script);
    const followed = await sink.traces(traces);
    expect(followed).toHaveLength(spans);
    expect((await reading.traces(traces)).map(({ span }) => span)).toEqual(followed.map(({ span }) => span));
  },
);

it("sends a loop that its session's end interrupts, and nothing for one that has ended", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const skaffold = twoLoops(script);
  skaffold.loopStarted(20_000);
  skaffold.build("web", "started", 20_010);
  skaffold.ended("process ended", 21_000);
  const other = twoLoops(script, "01JCXK3V8QZ6D7N2M4P5R6S7T9");
  other.lost("the tap is gone", 30_000);
  await write(script);
  const spans = await sink.traces(5);
  expect(shortOf(spans.slice(6, 8))).toEqual([
    ["RUN shop", "cancellation"],
    ["build web", "cancellation"],
  ]);
  expect(spans[6]?.attributes).toMatchObject({ "tapedeck.missing.end": "session_ended", "tapedeck.loop": 3 });
  await until(async () => (await gateway.sink(sink.name))?.lagEvents === 0, { message: "all to be read" });
  expect(spans).toHaveLength(14);
});

it("sends a command without loops as one trace when its session ends, as a child of TRACEPARENT", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const skaffold = script.session(session);
  skaffold.started({ command: "skaffold build", traceparent: `00-${traceId}-b7ad6b7169203331-01` });
  skaffold.configured();
  skaffold.build("web", "started", 100);
  skaffold.build("web", "failed", 200);
  skaffold.ended("process ended", 300, 1);
  await write(script);
  const [root, build] = await sink.traces(1);
  expect(root).toMatchObject({ name: "BUILD skaffold build", traceId, parentId: "b7ad6b7169203331" });
  expect(root?.attributes).toMatchObject({ "cicd.pipeline.result": "failure", "process.exit.code": 1 });
  expect(root?.resource).not.toHaveProperty("tapedeck.label.traceparent");
  expect(build).toMatchObject({ name: "build web", traceId, parentId: root?.spanId });
});

it.each([
  ["01", 1],
  ["00", 0],
])("gives the spans of a trace, and its links, the flags %s of TRACEPARENT", async (written, flags) => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const skaffold = script.session(session);
  skaffold.started({ traceparent: `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-${written}` });
  skaffold.configured();
  skaffold.loopStarted();
  skaffold.cached("web");
  skaffold.loopEnded("succeeded");
  await write(script);
  const [root, build] = await sink.traces(1);
  const [hasIsRemote, isRemote] = [0x100, 0x200];
  expect(root?.span.flags).toBe(hasIsRemote + isRemote + flags);
  expect([build?.span.flags, root?.span.links[0]?.flags]).toEqual(Array(2).fill(hasIsRemote + flags));
});

it("sends a Vagrant command with its job, and one that ends with its session", async () => {
  const script = scenario(newSource("vagrant"));
  const sink = await addSink(script);
  const vagrant = vagrantSession(session, script);
  vagrant.began();
  vagrant.queued("J1", "up", { at: 100 });
  vagrant.started("J1", { at: 200 });
  vagrant.queued("J2", "halt", { at: 250 });
  vagrant.started("J2", { at: 300 });
  vagrant.finished("J1", 3, { at: 5_000 });
  vagrant.ended(6_000);
  await write(script);
  const spans = await sink.traces(2);
  expect(shortOf(spans)).toEqual([
    ["RUN vagrant up", "failure"],
    ["job up", "failure"],
    ["RUN vagrant halt", "cancellation"],
    ["job halt", "cancellation"],
  ]);
  expect(spans[0]?.attributes).toMatchObject({ "process.exit.code": 3, "error.type": "3" });
  expect(spans[1]).toMatchObject({ parentId: spans[0]?.spanId, traceId: spans[0]?.traceId });
  expect(spans[1]?.span.start_time_unix_nano).toBe(spans[0]?.span.start_time_unix_nano);
  expect(spans[1] && spans[1].span.end_time_unix_nano - spans[1].span.start_time_unix_nano).toBeGreaterThan(
    1_000_000_000n,
  );
  expect(spans[0]?.resource).toMatchObject({ "cicd.pipeline.run.id": "J1", "service.name": "vagrant" });
});

it("sends a pod's run with its apps", async () => {
  const script = scenario(newSource("rkt"));
  const sink = await addSink(script);
  const rkt = rktSession(session, script);
  rkt.began();
  rkt.prepared("p1", ["web", "db"], { at: 100 });
  rkt.prepared("p2", ["other"], { at: 110 });
  rkt.started("p1", { at: 200 });
  rkt.started("p2", { at: 210 });
  rkt.exited("p1", [0, 7], { at: 9_000 });
  await write(script);
  const spans = await sink.traces(1);
  expect(shortOf(spans)).toEqual([
    ["RUN pod", "failure"],
    ["app web", "unknown"],
    ["app db", "failure"],
  ]);
  expect(spans[2]).toMatchObject({ parentId: spans[0]?.spanId });
  expect(spans[2]?.attributes["process.exit.code"]).toBe(7);
});

it("sends each span at its start, too, with live", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script, { live: true });
  twoLoops(script);
  await write(script);
  await until(() => sink.spans().filter(({ span }) => span.end_time_unix_nano > 0n).length >= 6, {
    message: "the ends",
  });
  const [begun, ended] = [sink.spans(), sink.spans()].map((spans, index) =>
    spans.filter(({ span }) => (span.end_time_unix_nano === 0n) === (index === 0)),
  );
  expect(begun?.map(({ name }) => name)).toEqual(["RUN shop", "build web", "deploy", "RUN shop", "build web"]);
  // A step from the cache has no start.
  const ids = (spans: readonly ReceivedSpan[] = []) =>
    spans.map(({ traceId, spanId, parentId }) => `${traceId} ${spanId} ${parentId}`);
  expect(ids(ended?.filter(({ name }) => name !== "build api"))).toEqual(ids(begun));
});

/** Each loop ends on v1 before v2 reports its rendering; v1 goes on meanwhile, and once v2 has nothing more to say. */
function loopsThatV2ReportsLate(script: Scenario) {
  const skaffold = script.session(session);
  const ref = (loop: number) => ({ kind: "", subject: "", runner: 1, loop });
  skaffold.started();
  skaffold.configured();
  skaffold.loopStarted(100);
  skaffold.loopEnded("failed", 200);
  skaffold.render("started", 110);
  skaffold.render("failed", 190);
  skaffold.loopEndedOnV2("failed", 201);
  skaffold.loopStarted(1_000);
  skaffold.render("started", 1_010);
  skaffold.loopEnded("failed", 1_100);
  skaffold.loopStarted(2_000);
  skaffold.render("failed", 1_090, ref(2));
  skaffold.loopEndedOnV2("failed", 1_101, ref(2));
  skaffold.loopEndedOnV2("succeeded", 2_999);
  skaffold.loopEnded("succeeded", 3_000);
  skaffold.loopStarted(4_000);
  skaffold.loopEnded("failed", 4_100);
  skaffold.render("started", 4_010);
  skaffold.render("failed", 4_090);
  skaffold.ended("process ended", 5_000);
  return [
    ["RUN shop", "failure"],
    ["render", "failure"],
    ["RUN shop", "failure"],
    ["render", "failure"],
    ["RUN shop", "success"],
    ["RUN shop", "failure"],
    ["render", "failure"],
  ];
}

it("sends what v2 reports of a loop after v1's end of it, also after a rewind and with a filter", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const kinds = ["loop.failed", "loop.succeeded"];
  const reading = await addSink(script, { filter: { sources: [script.source], kinds } }, "reading-late");
  const expected = loopsThatV2ReportsLate(script);
  await writeTogether(harness.log, script.events, 1);
  const first = await sink.traces(4);
  expect(shortOf(first)).toEqual(expected);
  const spansOf = (spans: readonly ReceivedSpan[]) => spans.map(({ span }) => span);
  expect(spansOf(await reading.traces(4))).toEqual(spansOf(first));
  await gateway.call("POST", `/${sink.name}/rewind`, { to: "start" });
  expect(spansOf((await sink.traces(8)).slice(first.length))).toEqual(spansOf(first));
});

it("sends a loop once more when v2 reports what belongs to it much later", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const skaffold = script.session(session);
  skaffold.started();
  skaffold.configured();
  skaffold.loopStarted(100);
  skaffold.loopEnded("failed", 200);
  await write(script);
  expect(shortOf(await sink.traces(1))).toEqual([["RUN shop", "failure"]]);
  const before = script.events.length;
  skaffold.render("started", 110);
  skaffold.render("failed", 190);
  skaffold.loopEndedOnV2("failed", 201);
  await writeTogether(harness.log, script.events.slice(before), 3);
  expect(shortOf(await sink.traces(2)).slice(1)).toEqual([
    ["RUN shop", "failure"],
    ["render", "failure"],
  ]);
});

/** The spans that were sent at their start, by name, and those of them whose end has not come after it. */
function startsIn(spans: readonly ReceivedSpan[]) {
  const isOpen = ({ span }: ReceivedSpan) => span.end_time_unix_nano === 0n;
  const last = new Map(spans.map((one) => [`${one.traceId} ${one.spanId}`, one]));
  return {
    begun: spans.filter(isOpen).map(({ name }) => name),
    open: [...last.values()].filter(isOpen).map(({ name }) => name),
  };
}

it("sends the end of each span that it has sent at its start, with live", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script, { live: true });
  const expected = loopsThatV2ReportsLate(script);
  const other = script.session("01JCXK3V8QZ6D7N2M4P5R6S7TC");
  other.started({}, 10_000);
  other.configured();
  other.loopStarted();
  other.loopEnded("failed");
  // Skaffold tries a sync again after the loop's end, and is ended meanwhile.
  other.phase("sync", "started");
  other.loopStarted();
  other.loopEnded("failed");
  other.phase("sync", "started");
  other.ended();
  await writeTogether(harness.log, script.events, 1);
  const ended = () => sink.spans().filter(({ span }) => span.end_time_unix_nano > 0n);
  await until(() => ended().length >= expected.length + 6, { message: "the ends" });
  const syncs = Array.from({ length: 2 }, () => ["RUN shop", "sync"]).flat();
  const { begun, open } = startsIn(sink.spans());
  expect(begun).toEqual(["RUN shop", "RUN shop", "render", "RUN shop", "RUN shop", ...syncs]);
  expect(open).toEqual([]);
});

it("sends the jobs of commands, and the steps of a command without loops, at their start with live", async () => {
  const script = scenario(newSource("vagrant"));
  const sink = await addSink(script, { live: true });
  const vagrant = vagrantSession(session, script);
  vagrant.began();
  vagrant.queued("J1", "up", { at: 100 });
  vagrant.started("J1", { at: 200 });
  // A job that is no command's, which is in no trace.
  vagrant.queued("J2", "", { at: 210 });
  vagrant.started("J2", { at: 220 });
  vagrant.finished("J1", 3, { at: 5_000 });
  await write(script);
  await until(() => sink.spans().length >= 4, { message: "the command's end" });
  expect(startsIn(sink.spans())).toEqual({ begun: ["job up", "RUN vagrant up"], open: [] });

  const builds = scenario(newSource());
  const ofBuilds = await addSink(builds, { live: true });
  const skaffold = builds.session(session);
  skaffold.started({ command: "skaffold build" });
  skaffold.configured();
  skaffold.build("web", "started");
  skaffold.build("api", "started");
  skaffold.build("web", "succeeded");
  skaffold.ended("process ended", undefined, 0);
  await write(builds);
  await until(() => ofBuilds.spans().length >= 6, { message: "the end of the builds" });
  const begun = ["BUILD skaffold build", "build web", "build api"];
  expect(startsIn(ofBuilds.spans())).toEqual({ begun, open: [] });
});

it("sends a loop whose end was not recorded when the next one begins", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const skaffold = script.session(session);
  skaffold.started();
  skaffold.configured();
  skaffold.loopStarted(100);
  skaffold.build("web", "started", 110);
  skaffold.loopStarted(1_000);
  skaffold.loopEnded("succeeded", 2_000);
  await write(script);
  const spans = await sink.traces(2);
  expect(shortOf(spans)).toEqual([
    ["RUN shop", "unknown"],
    ["build web", "unknown"],
    ["RUN shop", "success"],
  ]);
  expect(spans[0]?.attributes["tapedeck.missing.end"]).toBe("not_observed");
});

it("sends those runs alone whose end the filter lets through, each whole", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script, { filter: { sources: [script.source], kinds: ["*.failed"] } });
  twoLoops(script);
  await write(script);
  expect(shortOf(await sink.traces(1))).toEqual([
    ["RUN shop", "failure"],
    ["build web", "failure"],
  ]);
});

it("takes the labels of the loop, not of its session's start or of later loops", async () => {
  const script = scenario(newSource());
  const sink = await addSink(script);
  const skaffold = script.session(session);
  skaffold.started({ branch: "main", dirty: "false" });
  skaffold.configured();
  for (const branch of ["one", "two"]) {
    const loop = skaffold.loopStarted();
    skaffold.labelled({ branch }, loop);
    const later = { seconds: (loop.occurred_at?.seconds ?? 0n) + 60n, nanos: 0 };
    skaffold.labelled({ branch: "later" }, { ...loop, occurred_at: later });
    skaffold.loopEnded("succeeded");
  }
  await write(script);
  const roots = await sink.traces(2);
  expect(roots.map(({ resource }) => [resource["vcs.ref.head.name"], resource["tapedeck.label.dirty"]])).toEqual([
    ["one", "false"],
    ["two", "false"],
  ]);
});

it("takes a partial success for a failure, and parks the loop with what the target says", async () => {
  const script = scenario(newSource());
  const failed = ({ attributes }: ReceivedSpan) => attributes["cicd.pipeline.result"] === "failure";
  const partial = ExportTraceServiceResponse.fromPartial({
    partial_success: { rejected_spans: 2n, error_message: "the spans are too old" },
  });
  const answer = receiver.answer;
  const headers = { "content-type": "application/x-protobuf" };
  receiver.answer = (request) =>
    spansOf(request).some(failed)
      ? { status: 200, headers, body: ExportTraceServiceResponse.encode(partial).finish() }
      : { status: 200, headers };
  try {
    const sink = await addSink(script);
    twoLoops(script);
    await write(script);
    await until(async () => (await gateway.sink(sink.name))?.parked === 1, { message: "the parked loop" });
    const { items } = (await gateway.call("GET", `/${sink.name}/parked`)).body;
    expect(items).toMatchObject([
      { kind: "loop.failed", error: "answered 200: 2 spans were rejected: the spans are too old" },
    ]);
    expect(
      sink.spans().filter(({ attributes }) => attributes["cicd.pipeline.result"] === "success").length,
    ).toBeGreaterThan(0);
  } finally {
    receiver.answer = answer;
  }
});

it("sends nothing of a session that is erased", async () => {
  const script = scenario(newSource());
  const erasedSession = "01JCXK3V8QZ6D7N2M4P5R6S7TA";
  twoLoops(script, erasedSession);
  twoLoops(script);
  const offsets = await write(script);
  const erasure = {
    source: script.source,
    session: erasedSession,
    epoch: harness.log.epoch,
    lastSeq: sequenceOf(offsets.at(-1) ?? logStart),
    removedSeq: 0,
    removed: 0,
    state: "removing",
    began: new Date().toISOString(),
    who: "x",
    kind: "local",
  };
  harness.connection.publish(`$KV.TAPEDECK_ERASURES.open.${erasedSession}`, JSON.stringify(erasure));
  const sink = await addSink(script);
  // The gateway hears of the erasure in a moment.
  const sessionsAgain = async () => {
    const before = sink.spans().length;
    await gateway.call("POST", `/${sink.name}/rewind`, { to: "start" });
    const again = () => sink.spans().slice(before);
    await until(
      () => again().some(({ name, resource }) => name === "RUN shop" && resource["tapedeck.session"] === session),
      {
        message: "the loops again",
      },
    );
    return again().map(({ resource }) => resource["tapedeck.session"]);
  };
  await until(async () => !(await sessionsAgain()).includes(erasedSession), { message: "the erasure to be known" });
  expect(await sessionsAgain()).not.toContain(erasedSession);
});

it("sends what is left of a loop whose beginning is gone, and says so", async () => {
  const script = scenario(newSource());
  twoLoops(script);
  const offsets = await write(script);
  const first = script.events.findIndex(({ kind }) => kind === "build.succeeded");
  const manager = await jetstreamManager(harness.connection);
  await manager.streams.purge("TAPEDECK_LOG_default", { seq: sequenceOf(offsets[first] ?? logStart) });
  const sink = await addSink(script);
  const [root, ...others] = await sink.traces(2);
  expect(root?.attributes).toMatchObject({ "cicd.pipeline.result": "success", "tapedeck.missing.beginning": true });
  expect(others.find(({ attributes }) => attributes["tapedeck.loop"] === 2)?.attributes).not.toHaveProperty(
    "tapedeck.missing.beginning",
  );
});
