import type { JsonObject } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import {
  GetJobStreamResponse,
  GetVersionInfoResponse,
  Job,
  ListJobsResponse,
  VagrantService,
} from "@tapedeck/proto/vagrant/vagrant";
import { fromServiceError } from "@tapedeck/shared/errors/grpc";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { createMetrics } from "@tapedeck/shared/service/metrics";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requestOf } from "../../apis/vagrant/testing/sample.ts";
import { type Harness, shop, vagrantHarness } from "../../apis/vagrant/testing/vagrant-harness.ts";
import { gatewayMetrics } from "../../metrics.ts";
import { asBytes } from "./byte-methods.ts";
import { grpcServer } from "./server.ts";
import { letsAllIn } from "./testing/lets-all-in.ts";
import { vagrantServices } from "./vagrant-service.ts";

const stack = new AsyncDisposableStack();
const session = "01A";
const job = Buffer.from(Job.encode(Job.fromPartial({ id: "J1", state: 3 })).finish());
let on: Harness;
let client: Client;
let bound: Client;

beforeAll(async () => {
  on = stack.use(await vagrantHarness());
  on.session(session);
  on.hold("jobs", { J1: job });
  const watch = gatewayMetrics(createMetrics("test"), silentLogger).watch("api");
  const caller = () => ({ workspace: "default", who: "test", kind: "token" as const });
  const connect = async (only?: string) => {
    const services = [vagrantServices(on.api, caller, { bound: only, watch, unreadBytes: 1 << 20 })];
    const { address } = stack.use(await grpcServer({ host: "127.0.0.1", port: 0 }, services, letsAllIn));
    return stack.adopt(new Client(address, credentials.createInsecure()), (one) => one.close());
  };
  client = await connect();
  bound = await connect(shop);
});
afterAll(() => stack.disposeAsync());

type Fields = Readonly<Record<string, string | readonly string[]>>;
const spoken = { "client-api-protocol": "1,1" };

function metadata(fields: Fields): Metadata {
  const made = new Metadata();
  for (const [name, values] of Object.entries(fields)) for (const value of [values].flat()) made.add(name, value);
  return made;
}

const { requestSerialize, responseDeserialize } = asBytes;
const path = (rpc: string) => `/hashicorp.vagrant.Vagrant/${rpc}`;
const none = Buffer.alloc(0);

/** Answer and headers of a unary call, or its error. */
function call(rpc: string, request: Buffer, fields: Fields = spoken, by = client) {
  return new Promise<{ error?: ServiceError; bytes?: Buffer; head?: Metadata }>((resolve) => {
    let head: Metadata | undefined;
    const made = by.makeUnaryRequest(
      path(rpc),
      requestSerialize,
      responseDeserialize,
      request,
      metadata(fields),
      (error, bytes = none) => resolve(error !== null ? { error } : { bytes, ...(head && { head }) }),
    );
    made.once("metadata", (got) => {
      head = got;
    });
  });
}

/** How a call ends, of whatever kind: its client sends nothing, or one empty request. */
function end(rpc: string, fields: Fields) {
  const method = Object.values(VagrantService).find((one) => one.path === path(rpc));
  const { requestStream = false, responseStream = false } = method ?? {};
  if (!responseStream) return call(rpc, none, fields).then(({ error }) => ({ code: error?.code, ...error }));
  const made = requestStream
    ? client.makeBidiStreamRequest(path(rpc), requestSerialize, responseDeserialize, metadata(fields))
    : client.makeServerStreamRequest(path(rpc), requestSerialize, responseDeserialize, none, metadata(fields));
  made.on("error", () => {}).resume();
  return new Promise<{ code: number; details: string }>((resolve) => made.once("status", resolve));
}

describe("the protocol that a client speaks", () => {
  const methods = Object.values(VagrantService).map((one) => one.path.slice(path("").length));
  const needing = methods.filter((rpc) => rpc !== "GetVersionInfo");

  it("is needed by 33 methods", () => expect(needing).toHaveLength(33));

  it.each(needing)("is needed by %s", async (rpc) => {
    const details = "required header client-api-protocol is not set";
    expect(await end(rpc, {})).toMatchObject({ code: 3, details });
    expect(on.sent).toEqual([]);
  });

  it("is not needed by GetVersionInfo", async () => {
    const { bytes = none } = await call("GetVersionInfo", none, {});
    expect(GetVersionInfoResponse.decode(bytes).info?.api).toMatchObject({ current: 1, minimum: 1 });
  });

  it.each<[string, Fields, number | undefined, string]>([
    ["its usual words", { "client-api-protocol": "1,1", "client-version": "2.3.7", authorization: "x" }, undefined, ""],
    ["a newer current", { "client-api-protocol": "1,5" }, undefined, ""],
    ["it twice", { "client-api-protocol": ["1,1", "1,1"] }, 3, "required header client-api-protocol is not set"],
    ["garbage", { "client-api-protocol": "x" }, 3, 'invalid format for client-api-protocol: "x"'],
    ["an old one", { "client-api-protocol": "0,0" }, 3, "The client is outdated:"],
    ["a new one", { "client-api-protocol": "2,2" }, 3, "The server is outdated:"],
  ])("may be: %s", async (_, fields, code, text) => {
    const { error } = await call("_ListJobs", none, fields);
    expect(error?.code).toBe(code);
    expect(error?.details ?? "").toContain(text);
    expect(error?.metadata.get("grpc-status-details-bin") ?? []).toEqual([]);
  });
});

describe("one answer", () => {
  it("comes with the position that it reflects, as it was recorded", async () => {
    const { bytes, head } = await call("GetJob", Buffer.from(requestOf("GetJob", { job_id: "J1" })));
    expect(bytes).toEqual(job);
    expect(head?.get("tapedeck-position")).toEqual([on.position(7)]);
    expect(head?.get("tapedeck-session")).toEqual([session]);
  });

  it("is about what the metadata says", async () => {
    const { bytes = none } = await call("_ListJobs", none, {
      ...spoken,
      "tapedeck-at": "x-5",
      "tapedeck-session": "01B",
    });
    expect(ListJobsResponse.decode(bytes).jobs).toHaveLength(1);
    expect(on.requests.at(-1)).toMatchObject({ collection: "vagrant.jobs", at: "x-5", session: "01B" });
  });

  it("is Vagrant's own error where it has one, without anything beside it", async () => {
    const { error } = await call("GetJob", none);
    expect(error).toMatchObject({ code: 5, details: "job not found" });
    expect(error?.metadata.get("grpc-status-details-bin")).toEqual([]);
  });

  it("is Tapedeck's where it has none", async () => {
    const { error } = await call("_ListJobs", none, { ...spoken, "tapedeck-at": "before" });
    expect(fromServiceError(error)).toMatchObject({ code: "before_first", details: { earliest: "e-1" } });
  });

  it("is of the one source that a listener serves", async () => {
    expect((await call("_ListJobs", none, spoken, bound)).error).toBeUndefined();
    const { error } = await call("_ListJobs", none, { ...spoken, "tapedeck-source": "bob/shop/vagrant" }, bound);
    expect(fromServiceError(error)).toMatchObject({ code: "invalid_argument", details: { field: "source" } });
  });
});

describe("a write", () => {
  it("gets the upstream's answer", async () => {
    on.answers(({ forwarded_method }) => ({ response: Buffer.from(forwarded_method) }));
    expect((await call("PruneOldJobs", none)).bytes?.toString()).toBe(path("PruneOldJobs"));
  });

  it("gets the upstream's status", async () => {
    on.answers(() => ({ code: 13, message: "name: must be unique." }));
    const { error } = await call("UpsertBasis", none);
    expect(error).toMatchObject({ code: 13, details: "name: must be unique." });
  });

  it("that is dangerous says why", async () => {
    const { error } = await call("UpsertBox", none);
    expect(error).toMatchObject({ code: 9, details: "UpsertBox without a box crashes Vagrant" });
    expect(fromServiceError(error)).toMatchObject({ code: "refused_dangerous" });
  });
});

it.each(["RunnerConfig", "RunnerJobStream"])("%s ends at once where no upstream is connected", async (rpc) => {
  expect(await end(rpc, spoken)).toMatchObject({ code: 14, details: "nothing is connected" });
});

describe("a stream", () => {
  const messagesOf = (rpc: string, json: JsonObject) => {
    const request = Buffer.from(requestOf(rpc, json));
    return client.makeServerStreamRequest(path(rpc), requestSerialize, responseDeserialize, request, metadata(spoken));
  };

  it("of a job that nobody has ever seen is Vagrant's own error", async () => {
    const made = messagesOf("GetJobStream", { job_id: "J9" });
    const error = await new Promise<ServiceError>((resolve) => made.on("error", resolve).resume());
    expect(error).toMatchObject({ code: 5, details: "job not found" });
  });

  it("of a job begins with its headers, the opening and the job as it was recorded", async () => {
    const made = messagesOf("GetJobStream", { job_id: "J1" });
    made.on("error", () => {});
    const head = new Promise<Metadata>((resolve) => made.once("metadata", resolve));
    const got: Buffer[] = [];
    made.on("data", (message: Buffer) => got.push(message));
    expect((await head).get("tapedeck-position")).toHaveLength(1);
    await until(() => got.length >= 2, { message: "the state" });
    const [open, state] = got.map((message) => GetJobStreamResponse.decode(message).event);
    expect(open?.$case).toBe("open");
    expect(state).toMatchObject({ $case: "state", value: { previous: 0, current: 3, job: { id: "J1" } } });
    made.cancel();
  });

  it("of text is refused for a scope that says nothing", async () => {
    expect(await end("GetLogStream", spoken)).toMatchObject({ code: 9, details: "invalid scope supplied" });
  });
});
