import { join } from "node:path";
import { status } from "@grpc/grpc-js";
import { madeUpRecording, runningPod } from "@tapedeck/fakes/rkt/host";
import { loadRecording, type RecordedUpstream } from "@tapedeck/fakes/rkt/recording";
import type { FakeRkt } from "@tapedeck/fakes/rkt/server";
import {
  EventFilter,
  type EventType,
  GetLogsResponse,
  InspectImageRequest,
  InspectPodRequest,
  ListenEventsRequest,
  ListImagesRequest,
  ListPodsRequest,
  type Pod,
  type PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { infoOf } from "../stack/error-info.ts";
import type { RktClient } from "./client.ts";
import { settled } from "./host.ts";
import { type RecordedHost, recordedHost } from "./recorded-host.ts";

const fixtures = join(import.meta.dirname, "../../packages/fakes/recordings", "rkt");

describe("the output of a pod's apps", () => {
  const id = "91d2f685-a122-492d-8bbe-c843c3cdb304";
  const recording = loadRecording(join(fixtures, "08-logs-journal"));
  // The pods of this recording were never listed.
  const pod: Pod = { ...runningPod(0), id, apps: ["web", "side"].map(appNamed) };
  const listed = hostOf([pod], [pod]);
  /** All its log lines of the pod; each begins with its app's name. */
  const lines = [
    ...new Set(
      recording.rows
        .flatMap((row) => (row.kind === "stream" && row.rpc === "GetLogs" ? row.messages : []))
        .flatMap(({ bytes }) => GetLogsResponse.decode(bytes).lines),
    ),
  ];
  const linesOf = (app: string) => lines.filter((line) => line.includes(` MESSAGE=${app} `));
  let on: RecordedHost;
  beforeAll(async () => {
    on = await recordedHost({ ...recording, rows: [...recording.rows, ...listed.rows] }, { logs: "on" });
  });
  afterAll(() => on[Symbol.asyncDispose]());

  it("is recorded line by line, each line once, however often it was read", async () => {
    const { host, stack, client } = on;
    const received = async (times: number) => {
      host.playTo("pods", times);
      // The pod's own lines, apart from its apps, are held back until the connection ends.
      await until(() => host.fake.calls.GetLogs.made === 3 * times, { message: "the logs to be followed" });
      // Log lines come before the answers to later calls.
      await moreObservations(host.fake);
      await host.fake.goAway();
      const lost = async () => (await stack.events()).filter(({ event }) => event.kind === "upstream.lost").length;
      await until(async () => (await lost()) === times, { message: "the end of the connection" });
      await stack.caughtUp();
    };
    await received(1);
    await host.fake.comeBack();
    await received(2);
    expect(linesOf("web").length + linesOf("side").length).toBe(lines.length);
    expect(linesOf("web").length).toBeGreaterThan(5);
    expect(linesOf("side").length).toBeGreaterThan(2);
    expect(await client.logs({ pod_id: id, app_name: "web" })).toEqual(byTime(linesOf("web")));
    expect(await client.logs({ pod_id: id, app_name: "side" })).toEqual(byTime(linesOf("side")));
    expect(await client.logs({ pod_id: id })).toEqual(byTime(lines));
    expect(await client.logs({ pod_id: id.slice(0, 5), lines: 3 })).toEqual(byTime(lines).slice(-3));
    expect(await client.logs({ pod_id: id, app_name: "nope" })).toEqual([]);
  });
});

/** A host without images, which it reports at every poll. */
function hostOf(...pods: readonly (readonly Pod[])[]): RecordedUpstream {
  const made = madeUpRecording({ pods });
  return { ...made, rows: made.rows.filter((row) => row.kind !== "unary" || row.rpc !== "ListImages") };
}

/** Waits for more polls of a host without images, which the tap polls repeatedly. */
async function moreObservations(fake: FakeRkt): Promise<void> {
  const goal = fake.polls.images + 3;
  await until(() => fake.polls.images >= goal, { message: "more looks at the images" });
}

/** They begin with their time, and a shorter fraction sorts before a longer one. */
const byTime = (lines: readonly string[]) => [...lines].sort();

function appNamed(name: string) {
  const [app] = runningPod(0).apps;
  if (app === undefined) throw new Error("a pod without apps");
  return { ...app, name };
}

describe("requests that rkt itself refuses or answers with nothing", () => {
  const unresolved = { code: status.UNKNOWN, message: "unable to resolve UUID" };
  let on: RecordedHost;
  let client: RktClient;
  beforeAll(async () => {
    on = await recordedHost(loadRecording(join(fixtures, "06-filters")));
    await on.play({ pods: 2, images: 2 });
    client = on.client;
  });
  afterAll(() => on[Symbol.asyncDispose]());

  it.each([
    ["unknown", "12345678-1234-4234-8234-123456789abc"],
    ["malformed", "zzz not a uuid"],
    ["empty", ""],
    ["too long", "67e3348c-964e-4d89-a122-adfc8877cdb2f"],
    ["a pattern", "%"],
    ["with a zero byte", "67e3348c\0"],
    ["of 100,000 letters", "f".repeat(100_000)],
  ])("a pod's id that is %s", async (_, id) => {
    expect(await client.ask("InspectPod", InspectPodRequest.encode({ id }).finish())).toEqual(unresolved);
    await expect(client.logs({ pod_id: id })).rejects.toMatchObject({
      code: status.UNKNOWN,
      details: unresolved.message,
    });
  });

  it.each([
    ["unknown", `sha512-${"0".repeat(64)}`],
    ["a prefix", "sha512-24d9a700efd7a"],
    ["a name", "sim.example/worker"],
    ["empty", ""],
  ])("an image's id that is %s", async (_, id) => {
    const message = `ACI info not found with blob key "${id}"`;
    const answer = await client.ask("InspectImage", InspectImageRequest.encode({ id }).finish());
    expect(answer).toEqual({ code: status.UNKNOWN, message });
  });

  it("filters that match nothing", async () => {
    const none = { result: [] };
    const pods = [{ ids: ["nobody"] }, { cgroups: ["\0"] }, { states: [99 as PodState] }];
    for (const filter of pods) {
      const request = ListPodsRequest.encode(ListPodsRequest.fromPartial({ filters: [filter] })).finish();
      expect(await client.ask("ListPods", request)).toEqual(none);
    }
    const request = ListImagesRequest.fromPartial({ filters: [{ imported_after: 2n ** 63n - 1n }] });
    expect(await client.ask("ListImages", ListImagesRequest.encode(request).finish())).toEqual(none);
  });

  it("events of a past time, of no type, of an unknown pod", async () => {
    const filters = [
      { until_time: 1n },
      { until_time: 1n, types: [99 as EventType] },
      { until_time: -5n, ids: ["nobody"] },
    ];
    for (const filter of filters) expect(await listened(filter)).toEqual([]);
  });

  it("events of a time range that ends before it begins", async () => {
    await expect(listened({ since_time: 200n, until_time: 100n })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "filter.since_time 200 is after filter.until_time 100: the range is empty",
    });
  });

  it("bytes that are not a message, and unknown methods", async () => {
    const broken = await client.unary("/v1alpha.PublicAPI/InspectPod", Buffer.from([0x0a, 0x05]));
    expect(broken).toMatchObject({ code: status.FAILED_PRECONDITION, message: "unexpected EOF" });
    const method = await client.unary("/v1alpha.PublicAPI/Nope");
    expect(method.code).toBe(status.UNIMPLEMENTED);
    const unknown = await client.unary("/v1alpha.PublicAPI/GetInfo", Buffer.from([0xf2, 0x3f, 1, 1]));
    expect(unknown.code).toBe(status.OK);
  });

  it("an unknown source", async () => {
    const refused = await client.unary("/v1alpha.PublicAPI/ListPods", undefined, { "tapedeck-source": "nobody/host" });
    expect(infoOf(refused)?.reason).toBe("unknown_source");
  });

  function listened(filter: Partial<EventFilter>): Promise<Buffer[]> {
    return client.stream("ListenEvents", ListenEventsRequest.encode({ filter: EventFilter.create(filter) }).finish());
  }
});

describe("a host that hangs", () => {
  const recording = hostOf([runningPod(0)], [runningPod(0)]);

  it("is reported as lost while it hangs, and its images are still polled", async () => {
    await using on = await recordedHost(recording, { timeout: "2s" });
    const { host, stack } = on;
    const { fake } = host;
    // Only the gaps of pods count: on a busy machine a poll of images can take too long as well.
    const gaps = async () =>
      (await stack.events()).filter(({ event }) => event.kind === "session.gap" && event.subject === "pods");
    host.playTo("pods", 1);
    await until(() => host.stands("pods"), { message: "the second look to hang" });
    await until(() => fake.calls.ListPods.inFlight === 0, { message: "it to be given up" });
    await moreObservations(fake);
    expect(fake.played.pods).toBe(1);
    expect(await gaps()).toEqual([]);
    host.playTo("pods", 2);
    await until(async () => (await gaps()).length > 0, { message: "a gap" });
    const [gap] = await gaps();
    expect(gap?.event).toMatchObject({ subject: "pods", detail: { value: { channel: "pods" } } });
    expect(gap?.event.not_before).toBeDefined();
  });

  it("does not keep ingest from stopping", async () => {
    await using on = await recordedHost(recording);
    const { host, stack } = on;
    host.playTo("pods", 1);
    await settled(host, stack, "pods");
    expect(host.fake.calls.ListPods.inFlight).toBe(1);
    // Otherwise the call would only time out after an hour.
    await stack.parts.ingest[Symbol.asyncDispose]();
    await until(() => host.fake.calls.ListPods.inFlight === 0, { message: "the call to be given up" });
  });
});
