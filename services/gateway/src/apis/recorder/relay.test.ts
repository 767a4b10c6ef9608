import type { ServiceError } from "@grpc/grpc-js";
import { credentials, type handleBidiStreamingCall, Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import {
  type PushRequest,
  type PushResponse,
  RecorderClient,
  RecorderService,
} from "@tapedeck/proto/tapedeck/v1/recorder";
import { fromUnknown, TapedeckError } from "@tapedeck/shared/errors/errors";
import { toGrpcStatus } from "@tapedeck/shared/errors/grpc";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it } from "vitest";
import type { Caller } from "../../call-context.ts";
import { callerOf } from "../../transports/grpc/authentication.ts";
import { recorderServices } from "../../transports/grpc/recorder-service.ts";
import { grpcServer } from "../../transports/grpc/server.ts";
import { recorderRelay } from "./relay.ts";

const stack = { current: new AsyncDisposableStack() };
afterEach(async () => {
  await stack.current.disposeAsync();
  stack.current = new AsyncDisposableStack();
});

type Push = {
  readonly metadata: Metadata;
  readonly got: PushRequest["body"][];
  readonly refuse: (error: TapedeckError) => void;
  isOver: boolean;
};

/** What is behind the gateway: takes what comes, or nothing at all. */
async function fakeIngest({ isStuck = false } = {}) {
  const pushes: Push[] = [];
  const push: handleBidiStreamingCall<PushRequest, PushResponse> = (call) => {
    const refuse = (error: TapedeckError) => void call.emit("error", toGrpcStatus(error));
    const mine: Push = { metadata: call.metadata, got: [], refuse, isOver: false };
    pushes.push(mine);
    call.on("cancelled", () => {
      mine.isOver = true;
    });
    if (isStuck) return;
    call.on("data", ({ body }: PushRequest) => {
      mine.got.push(body);
      if (body?.$case === "item") call.write({ body: { $case: "committed", value: { index: body.value.index } } });
    });
    call.on("end", () => call.end());
  };
  const server = new Server({ "grpc.max_receive_message_length": -1 });
  server.addService(RecorderService, { push });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  stack.current.defer(() => server.forceShutdown());
  return { address: `127.0.0.1:${port}`, pushes };
}

async function gateway(ingest: string, caller: Partial<Caller> = {}) {
  const relay = stack.current.use(recorderRelay(ingest, "services' key", credentials.createInsecure()));
  const watch = { seen: () => {}, sent: () => {}, failed: fromUnknown };
  const options = {
    authenticate: async ({ peer }: { peer: string }) => ({
      workspace: "acme",
      who: `Zoë ${peer}`,
      kind: "token" as const,
      ...caller,
    }),
    failed: fromUnknown,
  };
  const at = { host: "127.0.0.1", port: 0 };
  const { address } = stack.current.use(await grpcServer(at, [recorderServices(relay, callerOf, watch)], options));
  return address;
}

function tap(address: string, extra: Readonly<Record<string, string>> = {}) {
  const client = new RecorderClient(address, credentials.createInsecure());
  stack.current.defer(() => client.close());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(extra)) metadata.set(name, value);
  const call = client.push(metadata);
  const reported: PushResponse["body"][] = [];
  const state: { error?: ServiceError; isOver: boolean } = { isOver: false };
  call.on("data", ({ body }: PushResponse) => reported.push(body));
  call.on("error", (error: ServiceError) => {
    state.error = error;
  });
  call.on("end", () => {
    state.isOver = true;
  });
  return {
    call,
    reported,
    item: (index: bigint, bytes = 1) =>
      call.write({
        body: {
          $case: "item",
          value: {
            index,
            connection: "C",
            at: undefined,
            what: { $case: "frame", value: { channel: "v1", bytes: Buffer.alloc(bytes), more: false } },
          },
        },
      }),
    failure: () => until(() => state.error, { message: "the push to fail" }),
    ended: () => until(() => state.isOver, { message: "the push to end" }),
  };
}

it("a tap's push comes to ingest with the place that the token names, and nothing that the tap says of that", async () => {
  const { address, pushes } = await fakeIngest();
  const forged = {
    "tapedeck-key": "guess",
    "tapedeck-workspace": "another",
    "tapedeck-developer": "bob",
    "tapedeck-anything": "x",
    authorization: "Bearer tdk_x",
  };
  const pushing = tap(await gateway(address, { developer: "Dora", roles: new Set(["recorder"]) }), forged);
  for (const index of [1n, 2n, 3n]) pushing.item(index, 1_000_000);
  pushing.call.end();
  await pushing.ended();
  const [push] = pushes;
  const given = push?.metadata.getMap() ?? {};
  expect(Object.fromEntries(Object.entries(given).filter(([name]) => /^tapedeck|auth/.test(name)))).toEqual({
    "tapedeck-key": "services' key",
    "tapedeck-workspace": "acme",
    "tapedeck-developer": "dora",
  });
  expect(push?.got.length).toBe(3);
  expect(pushing.reported).toHaveLength(3);
});

it("without a developer in the token the tap says whose it is", async () => {
  const { address, pushes } = await fakeIngest();
  tap(await gateway(address)).item(1n);
  const push = await until(() => pushes[0], { message: "the push" });
  expect(push.metadata.get("tapedeck-developer")).toEqual([]);
});

it("a token that may not record comes no further than the gateway", async () => {
  const { address, pushes } = await fakeIngest();
  const roles = new Set(["viewer", "controller"] as const);
  const pushing = tap(await gateway(address, { roles, token: "tok_1" }));
  expect(await pushing.failure()).toMatchObject({
    code: status.PERMISSION_DENIED,
    details: "this needs a token with the role recorder; this one has viewer, controller",
  });
  expect(pushes).toEqual([]);
});

it("a push ends when its token is revoked, on both sides", async () => {
  const { address, pushes } = await fakeIngest();
  const revocation = new AbortController();
  const pushing = tap(await gateway(address, { revoked: revocation.signal }));
  pushing.item(1n);
  await until(() => pushing.reported.length === 1, { message: "the push to go" });
  revocation.abort(new TapedeckError("unauthenticated", "this token was revoked"));
  expect(await pushing.failure()).toMatchObject({ code: status.UNAUTHENTICATED, details: "this token was revoked" });
  await until(() => pushes[0]?.isOver, { message: "ingest to be reported" });
});

it("ingest's own words come to the tap, and its death is reported as one that mends", async () => {
  const { address, pushes } = await fakeIngest();
  const at = await gateway(address);
  const refused = tap(at);
  refused.item(1n);
  (await until(() => pushes[0], { message: "the push" })).refuse(new TapedeckError("source_taken", "it is taken"));
  expect(await refused.failure()).toMatchObject({ code: status.ALREADY_EXISTS, details: "it is taken" });
  const nobody = tap(await gateway("127.0.0.1:1"));
  expect(await nobody.failure()).toMatchObject({ code: status.UNAVAILABLE });
});

it("a message above the limit, or no message at all, ends its own push and no other", async () => {
  const { address, pushes } = await fakeIngest();
  const at = await gateway(address);
  const good = tap(at);
  good.item(1n);
  const large = tap(at);
  large.item(1n, 5 * 1024 * 1024);
  expect(await large.failure()).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
  const client = new RecorderClient(at, credentials.createInsecure());
  stack.current.defer(() => client.close());
  const garbled = client.makeBidiStreamRequest(
    RecorderService.push.path,
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => bytes,
  );
  const failed = new Promise<ServiceError>((resolve) => garbled.on("error", resolve));
  garbled.on("data", () => {});
  garbled.write(Buffer.from("garbage, and no message"));
  expect((await failed).code).not.toBe(status.OK);
  good.item(2n);
  await until(() => good.reported.length === 2, { message: "the good one to go on" });
  await until(() => pushes.filter(({ isOver }) => !isOver).length === 1, { message: "the others to be gone" });
});

it("a recorder that takes nothing costs the gateway next to nothing", async () => {
  const { address } = await fakeIngest({ isStuck: true });
  const pushing = tap(await gateway(address));
  let taken = 0;
  const send = () => {
    while (pushing.item(1n, 1_000_000) && taken < 1_000) taken++;
  };
  pushing.call.on("drain", send);
  send();
  // All of its way is in this process: what is on it moves on between two checks.
  let before = 0;
  let same = 0;
  const isHeldUp = () => {
    same = taken === before ? same + 1 : 0;
    before = taken;
    return same >= 10;
  };
  await until(isHeldUp, { message: "the tap to be held up" });
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(200);
});
