import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  EventFilter,
  GetLogsRequest,
  type ListenEventsResponse,
  ListPodsRequest,
  Pod,
  PublicAPIClient,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Harness, host, rktHarness, timestamp } from "../../apis/rkt/testing/rkt-harness.ts";
import { gatewayMetrics } from "../../metrics.ts";
import { asBytes } from "./byte-methods.ts";
import { rktServices } from "./rkt-service.ts";
import { grpcServer } from "./server.ts";
import { letsAllIn } from "./testing/lets-all-in.ts";

const stack = new AsyncDisposableStack();
const session = "01A";
const pod = Pod.fromPartial({ id: "91d2f685-a122-492d-8bbe-c843c3cdb304", manifest: Buffer.from("{}") });
let on: Harness;
let address: string;
let client: PublicAPIClient;
let bound: PublicAPIClient;

const started = (id: string, at: number) => ({
  kind: "pod.started",
  channel: "pods",
  session,
  occurred_at: timestamp(at),
  observed_at: timestamp(at),
  detail: { $case: "pod" as const, value: { pod: id, name: id } },
});

beforeAll(async () => {
  on = stack.use(await rktHarness());
  on.session(session);
  on.hold("rkt.pods", { [pod.id]: Pod.encode(pod).finish() });
  const watch = gatewayMetrics(createMetrics("test"), silentLogger).watch("api");
  const caller = () => ({ workspace: "default", who: "test", kind: "token" as const });
  const listen = async (bound?: string) => {
    const services = [rktServices(on.api, caller, { bound, watch, unreadBytes: 1 << 20 })];
    return stack.use(await grpcServer({ host: "127.0.0.1", port: 0 }, services, letsAllIn)).address;
  };
  address = await listen();
  const connect = (to: string) =>
    stack.adopt(new PublicAPIClient(to, credentials.createInsecure()), (one) => one.close());
  client = connect(address);
  bound = connect(await listen(host));
});
afterAll(() => stack.disposeAsync());

const metadata = (fields: Readonly<Record<string, string>>) => {
  const made = new Metadata();
  for (const [name, value] of Object.entries(fields)) made.set(name, value);
  return made;
};

/** Response and headers of a call, or its error. */
function listPods(by: PublicAPIClient, fields: Readonly<Record<string, string>> = {}) {
  return new Promise<{ error?: ServiceError; ids?: readonly string[]; head?: Metadata }>((resolve) => {
    let head: Metadata | undefined;
    const call = by.listPods(ListPodsRequest.create(), metadata(fields), (error, response) =>
      resolve(error !== null ? { error } : { ids: response.pods.map(({ id }) => id), ...(head && { head }) }),
    );
    call.once("metadata", (got) => {
      head = got;
    });
  });
}

describe("one answer", () => {
  it("comes with the position that it reflects", async () => {
    const { ids, head } = await listPods(client);
    expect(ids).toEqual([pod.id]);
    expect(head?.get("tapedeck-position")).toEqual([on.position(7)]);
    expect(head?.get("tapedeck-session")).toEqual([session]);
  });

  it("is about what the metadata says", async () => {
    await listPods(client, { "tapedeck-at": "x-5", "tapedeck-session": session });
    expect(on.requests.at(-1)).toMatchObject({ at: "x-5", session });
  });

  it("is rkt's own error where rkt has one, without anything beside it", async () => {
    const error = await new Promise<ServiceError | null>((resolve) => client.inspectPod({ id: "zzz" }, resolve));
    expect(error).toMatchObject({ code: 2, details: "unable to resolve UUID" });
    expect(error?.metadata.get("grpc-status-details-bin")).toEqual([]);
  });

  it("is Tapedeck's where it has none", async () => {
    const { error } = await listPods(client, { "tapedeck-at": "before" });
    expect(error?.code).toBe(5);
    expect(fromServiceError(error)).toMatchObject({ code: "before_first", details: { earliest: "e-1" } });
  });

  it("is that of rkt's library to bytes that are no request", async () => {
    const raw = stack.adopt(new Client(address, credentials.createInsecure()), (one) => one.close());
    const { requestSerialize, responseDeserialize } = asBytes;
    const error = await new Promise<ServiceError | null>((resolve) => {
      const broken = Buffer.from([0x0a, 0x05]);
      raw.makeUnaryRequest("/v1alpha.PublicAPI/InspectPod", requestSerialize, responseDeserialize, broken, resolve);
    });
    expect(error).toMatchObject({ code: 9, details: "unexpected EOF" });
  });

  it("is of the one source that a listener serves", async () => {
    expect((await listPods(bound)).ids).toEqual([pod.id]);
    const { error } = await listPods(bound, { "tapedeck-source": "other/host/rkt" });
    expect(fromServiceError(error)).toMatchObject({ code: "invalid_argument", details: { field: "source" } });
  });
});

describe("a stream", () => {
  it("sends its headers at once, then what happens, until the client leaves", async () => {
    const call = client.listenEvents({ filter: EventFilter.fromPartial({ names: ["a"] }) });
    const got: ListenEventsResponse[] = [];
    call.on("data", (message: ListenEventsResponse) => got.push(message)).on("error", () => {});
    const head = await new Promise<Metadata>((resolve) => call.once("metadata", resolve));
    expect(head.get("tapedeck-position")).toEqual([on.position(0)]);
    await on.add(started("a", 10), started("b", 10));
    await until(() => got.length === 1, { message: "the event" });
    expect(got[0]?.events).toMatchObject([{ type: 3, id: "a", from: "a", time: 10n }]);
    call.cancel();
  });

  it("ends with OK where it ends", async () => {
    const call = client.listenEvents({ filter: EventFilter.fromPartial({ until_time: 5n }) });
    call.resume();
    expect((await new Promise<{ code: number }>((resolve) => call.once("status", resolve))).code).toBe(0);
  });

  it.each([
    ["a filter that nothing passes", { since_time: 5n, until_time: 4n }, {}, 3, "filter.since_time"],
    ["a moment", {}, { "tapedeck-at": "x-5" }, 3, "at"],
  ])("is refused for %s", async (_, filter, fields, code, field) => {
    const call = client.listenEvents({ filter: EventFilter.fromPartial(filter) }, metadata(fields));
    const error = await new Promise<ServiceError>((resolve) => call.on("error", resolve).resume());
    expect(error.code).toBe(code);
    expect(fromServiceError(error)).toMatchObject({ code: "invalid_argument", details: { field } });
  });

  it("of lines ends with rkt's error where there are none", async () => {
    const call = client.getLogs(GetLogsRequest.fromPartial({ pod_id: pod.id, follow: true }));
    const error = await new Promise<ServiceError>((resolve) => call.on("error", resolve).resume());
    expect(error).toMatchObject({ code: 2, details: `logging unsupported for pod "${pod.id}"` });
  });
});
