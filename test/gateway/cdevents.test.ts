import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { type Receiver, startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { startSinkHarness } from "@tapedeck/gateway/sinks/testing/sink-harness";
import { type Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { kinds } from "@tapedeck/shared/events/kinds";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { until } from "@tapedeck/shared/testing/until";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

type CdEvent = {
  readonly context: {
    readonly id: string;
    readonly source: string;
    readonly type: string;
    readonly timestamp: string;
    readonly specversion: string;
  };
  readonly subject: { readonly id: string; readonly content: Readonly<Record<string, unknown>> };
};

/** The specification's own schemas, by the type of event. */
const schemas = new Map<string, ValidateFunction>();
const folder = join(import.meta.dirname, "../fixtures/cdevents");
const ajv = new Ajv2020({ strict: false, allErrors: true });
formats.default(ajv);
const schemaFiles = (of: string) => readdirSync(of).filter((name) => name.endsWith(".json"));
for (const name of schemaFiles(join(folder, "links"))) ajv.addSchema(schemaIn("links", name));
for (const name of schemaFiles(folder)) {
  const schema = schemaIn(name);
  const [type = "custom"] = schema.properties.context.properties.type.enum ?? [];
  schemas.set(type, ajv.compile(schema));
}

function schemaIn(...path: readonly string[]) {
  return JSON.parse(readFileSync(join(folder, ...path), "utf8"));
}

/** Asserts that each is the CDEvent that the specification describes, in the CloudEvent that its binding describes. */
function assertValid(received: Receiver["accepted"]): readonly CdEvent[] {
  return received.map((cloudEvent) => {
    const data = cloudEvent.data as unknown as CdEvent;
    const validate = schemas.get(data.context.type) ?? schemas.get("custom");
    expect(validate?.(data), `${JSON.stringify(data)}: ${JSON.stringify(validate?.errors)}`).toBe(true);
    const { id, source, type, timestamp, specversion } = data.context;
    expect(specversion).toBe("0.5.1");
    expect(cloudEvent).toMatchObject({
      specversion: "1.0",
      id,
      source,
      type,
      time: timestamp,
      subject: data.subject.id,
    });
    expect(schemas.has(type), type).toBe(true);
    return data;
  });
}

const typeOf = ({ context }: CdEvent) => context.type.replace(/^dev\.cdevents\./, "").replace(/\.\d+\.\d+\.\d+$/, "");

const succeeded = { outcome: Outcome.OUTCOME_SUCCEEDED };
const failed = { outcome: Outcome.OUTCOME_FAILED, error: { code: "BUILD", message: 'exit "1"\n', suggestions: [] } };
const step = (kind: string, subject = ""): Partial<Event> => ({
  kind,
  subject,
  operation: { kind: kind.split(".")[0] ?? "", subject, runner: 1, loop: 2 },
});
const session = (kind: string, labels: Readonly<Record<string, string>>): Partial<Event> => ({
  kind,
  channel: "tapedeck",
  detail: { $case: "session_detail", value: { labels } as never },
});
const app = { pod: "p", app: "etcd", image_id: "sha512-ab", image_name: "coreos.com/etcd", image_version: "v3.1" };

/** Every kind, with what makes it a CDEvent. */
const skaffoldEvents: readonly Partial<Event>[] = [
  session("session.started", { commit: "0a1b2c", dirty: "false" }),
  step("loop.started"),
  step("build.started", "gcr.io/shop/Web"),
  session("session.labelled", { dirty: "true" }),
  { ...step("build.succeeded", "gcr.io/shop/Web"), ...succeeded },
  { ...step("build.cached", "api"), ...succeeded },
  { ...step("build.failed", "api"), ...failed },
  ...["test", "render", "deploy", "verify", "exec", "check", "sync"].flatMap((noun) => [
    step(`${noun}.started`),
    { ...step(`${noun}.succeeded`), ...succeeded },
  ]),
  { ...step("init.failed"), ...failed },
  { ...step("deploy.canceled"), outcome: Outcome.OUTCOME_CANCELED },
  { ...step("resource.ready", "service/web"), detail: { $case: "resource", value: { url: "http://web" } as never } },
  { ...step("resource.ready", "pod/web"), detail: { $case: "resource", value: { url: "" } as never } },
  {
    ...step("port.forwarded", "service/web"),
    detail: { $case: "port", value: { resource_type: "service", resource_name: "web", namespace: "dev" } as never },
  },
  { ...step("loop.failed"), ...failed },
  { ...step("log.written"), detail: { $case: "text", value: { text: "building" } as never } },
];
const vagrantEvents: readonly Partial<Event>[] = [
  {
    kind: "job.queued",
    subject: "J1",
    detail: { $case: "job", value: { operation: "command", command: "up" } as never },
  },
  { kind: "job.assigned", subject: "J1" },
  { kind: "job.started", subject: "J1" },
  { kind: "command.started", subject: "J1", detail: { $case: "command", value: { command: "up" } as never } },
  { kind: "command.finished", subject: "J1", ...failed },
  { kind: "job.succeeded", subject: "J1", ...failed },
  { kind: "job.lost", subject: "J2" },
];
const rktEvents: readonly Partial<Event>[] = [
  {
    kind: "image.imported",
    subject: "sha512-ab",
    detail: { $case: "image", value: { image: "sha512-ab", name: "coreos.com/etcd", version: "v3.1" } as never },
  },
  { kind: "image.removed", subject: "sha512-ab" },
  { kind: "app.started", subject: "p/etcd", detail: { $case: "app", value: app as never } },
  { kind: "app.exited", subject: "p/etcd", detail: { $case: "app", value: app as never } },
];

it("every kind with a counterpart is a valid CDEvent, and no other kind is sent", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  const write = async (upstream: UpstreamName, project: string, events: readonly Partial<Event>[]) => {
    const source = sourceName({ workspace: "default", developer: "alice", project, upstream });
    const writer = testWriter(harness.log.writer, source);
    for (const event of events) await writer.append(1, event);
  };
  await write("skaffold", "shop", skaffoldEvents);
  await write("vagrant", "shop", vagrantEvents);
  await write("rkt", "host", rktEvents);
  // The same without anything that it could be made of: what does not fit is not sent, and nothing is invalid.
  await write(
    "skaffold",
    "bare",
    kinds.map((kind) => ({ kind })),
  );
  await using gateway = await harness.gateway();
  expect((await gateway.add("cd", receiver, { cdevents: true })).body).toMatchObject({ cdevents: true });
  const isIdle = async () => (await gateway.sink("cd"))?.lagEvents === 0 && receiver.accepted.length > 0;
  await until(isIdle, { message: "all events to be delivered" });
  expect(await gateway.sink("cd")).toMatchObject({ parked: 0, state: "delivering" });

  const all = assertValid(receiver.accepted);
  const of = (project: string) => all.filter(({ context }) => context.source.includes(`/${project}/`));
  const shop = of("shop").map((event) => `${typeOf(event)} ${event.subject.id}`);
  const tasks = ["test", "render", "deploy", "verify", "exec", "check", "sync"].flatMap((noun) => [
    `taskrun.started s.1.2/${noun}`,
    `taskrun.finished s.1.2/${noun}`,
  ]);
  const built = "pkg:oci/web?repository_url=gcr.io%2Fshop%2Fweb";
  expect(shop).toEqual([
    "pipelinerun.started s.1.2",
    "build.started s.1.2/build/gcr.io/shop/Web",
    "taskrun.started s.1.2/build/gcr.io/shop/Web",
    "build.finished s.1.2/build/gcr.io/shop/Web",
    `artifact.packaged ${built}`,
    "taskrun.finished s.1.2/build/gcr.io/shop/Web",
    "build.finished s.1.2/build/api",
    "taskrun.finished s.1.2/build/api",
    "build.finished s.1.2/build/api",
    "taskrun.finished s.1.2/build/api",
    ...tasks,
    "taskrun.finished s.1.2/init",
    "taskrun.finished s.1.2/deploy",
    "service.published service/web",
    "service.published service/web",
    "pipelinerun.finished s.1.2",
    "pipelinerun.queued J1",
    "pipelinerun.started J1",
    "taskrun.started J1/command",
    "taskrun.finished J1/command",
    "pipelinerun.finished J1",
    "pipelinerun.finished J2",
  ]);
  const image = "pkg:generic/coreos.com/etcd@v3.1?image_id=sha512-ab";
  expect(of("host").map((event) => `${typeOf(event)} ${event.subject.id}`)).toEqual([
    `artifact.downloaded ${image}`,
    "service.deployed p/etcd",
    "service.removed p/etcd",
  ]);
  const contentOf = (type: string, source: string) =>
    of(source).findLast((event) => typeOf(event) === type)?.subject.content;
  expect(contentOf("artifact.packaged", "shop")).toEqual({ change: { id: "0a1b2c-dirty" } });
  expect(contentOf("service.deployed", "host")).toEqual({ environment: { id: "alice" }, artifactId: image });
  expect(of("shop").find((event) => typeOf(event) === "pipelinerun.finished")?.subject.content).toEqual({
    pipelineName: "shop",
    uri: expect.stringMatching(/^http:.*\/loops\/s\.1\.2$/),
    outcome: "failure",
    errors: 'exit "1"\n',
  });
});

it("ids are the same in each repetition and different for all events, in both modes", async () => {
  await using harness = await startSinkHarness();
  const source = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" });
  const writer = testWriter(harness.log.writer, source);
  for (const event of skaffoldEvents) await writer.append(1, event);
  const texts: string[][] = [];
  for (const mode of ["batched", "structured"]) {
    await using receiver = await startReceiver();
    await using gateway = await harness.gateway();
    // The third CloudEvent of an event is refused twice: the event is repeated as a whole.
    let refusals = 2;
    receiver.answer = ({ body }) => ({ status: body.includes("artifact.packaged") && refusals-- > 0 ? 503 : 200 });
    await gateway.add(mode, receiver, { cdevents: true, mode });
    const isIdle = async () => (await gateway.sink(mode))?.lagEvents === 0 && receiver.accepted.length > 0;
    await until(isIdle, { message: "all events to be delivered" });
    assertValid(receiver.accepted);
    const byId = new Map(receiver.accepted.map((event) => [event.id, JSON.stringify(event)]));
    expect(receiver.accepted.every((event) => byId.get(event.id) === JSON.stringify(event))).toBe(true);
    const webhookIds = receiver.requests.map(({ headers }) => headers["webhook-id"]);
    if (mode === "structured") expect(new Set(webhookIds).size).toBe(byId.size);
    texts.push([...byId.values()]);
  }
  expect(texts[0]).toEqual(texts[1]);
  expect(texts[0]?.length).toBe(29);
});

it("an event of which its target refuses the first or the second CloudEvent is parked, and others go on", async () => {
  await using harness = await startSinkHarness();
  const writer = testWriter(
    harness.log.writer,
    sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" }),
  );
  for (const event of skaffoldEvents) await writer.append(1, event);
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  const isRefused = (body: string) => body.includes("build.started") || body.includes("artifact.packaged");
  receiver.answer = ({ body }) => ({ status: isRefused(body) ? 400 : 200 });
  await gateway.add("cd", receiver, { cdevents: true, mode: "structured" });
  await until(async () => (await gateway.sink("cd"))?.parked === 2, { message: "both to be parked" });
  const isOver = () => receiver.accepted.some(({ type }) => type.includes("pipelinerun.finished"));
  await until(isOver, { message: "the events after it" });
});

it("the request of a test is a custom event of CDEvents", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  await gateway.add("cd", receiver, { cdevents: true });
  expect((await gateway.call("POST", "/cd/test")).body).toMatchObject({ accepted: true });
  const [sent] = receiver.accepted;
  expect(sent?.type).toBe("dev.cdeventsx.tapedeck-sink.tested.0.1.0");
  const validate = schemas.get("custom");
  expect(validate?.(sent?.data), JSON.stringify(validate?.errors)).toBe(true);
});

it("a sink with another value for cdevents is refused", async () => {
  await using harness = await startSinkHarness();
  await using gateway = await harness.gateway();
  const refused = await gateway.call("POST", "", { name: "cd", target: "https://hooks.example/", cdevents: "yes" });
  expect(refused).toMatchObject({ status: 400, body: { error: { field: "cdevents" } } });
});

it("the reports of a real Skaffold give valid CDEvents, with a task for each of its builds and a run for each loop", async () => {
  const recording = loadRecording(recordingFolder("10-status-check-port-forward-sync-app-logs"));
  await using fake = await startFakeSkaffold({ recording });
  await using stack = await startStack({
    skaffold: [{ developer: "alice", project: "shop", address: fake.address }],
    env: { TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1" },
  });
  await using receiver = await startReceiver();
  const body = JSON.stringify({ name: "cd", target: receiver.url, start: "start", cdevents: true });
  expect((await stack.httpCall("POST", "/api/v1/sinks", {}, body)).status).toBe(201);
  await fake.play();
  await stack.drained(fake);
  const loops = () => receiver.accepted.filter(({ type }) => type.includes("pipelinerun.finished")).length;
  const { items } = JSON.parse(
    (await stack.httpCall("GET", "/api/v1/events?kind=loop.succeeded&kind=loop.failed")).body,
  );
  await until(() => loops() === items.length, { message: "every loop" });
  const types = new Set(assertValid(receiver.accepted).map(typeOf));
  expect([...types].toSorted()).toEqual([
    ...["build.finished", "build.started", "pipelinerun.finished", "pipelinerun.started"],
    ...["service.published", "taskrun.finished", "taskrun.started"],
  ]);
});
