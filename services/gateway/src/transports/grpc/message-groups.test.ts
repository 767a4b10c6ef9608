import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { type ChannelCredentials, Client, credentials, Metadata, type StatusObject } from "@grpc/grpc-js";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { openCertificate } from "@tapedeck/shared/service/tls/certificate";
import { testCertificate } from "@tapedeck/shared/testing/certificates";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it } from "vitest";
import { asBytes } from "./byte-methods.ts";
import { messageGroups } from "./message-groups.ts";
import { type GrpcServerOptions, grpcServer } from "./server.ts";
import { callSignal, type StreamCall, writeAll } from "./server-stream.ts";
import { toStatus } from "./status.ts";
import { letsAllIn } from "./testing/lets-all-in.ts";

const path = "/test.Groups/Read";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

type Groups = () => AsyncIterable<readonly Uint8Array[]>;

/** A server whose only method answers with metadata, these messages, and trailing metadata or the error. */
async function serve(groups: Groups, options: Partial<GrpcServerOptions> = {}) {
  const over: boolean[] = [];
  const read = async (call: StreamCall) => {
    const signal = callSignal(call);
    signal.addEventListener("abort", () => over.push(true));
    const [head, trailer] = [new Metadata(), new Metadata()];
    head.set("head", "first");
    trailer.set("trailer", "last");
    try {
      call.sendMetadata(head);
      await writeAll(call, groups(), signal, { unreadBytes: 100_000, sent: () => {} });
      if (!signal.aborted) call.end(trailer);
    } catch (error) {
      call.emit("error", toStatus(error as TapedeckError));
    }
  };
  const definition = { read: { path, requestStream: false, responseStream: true, ...asBytes } };
  const services = [{ definition, handlers: { read }, names: ["test.Groups"] }];
  const server = stack.use(await grpcServer({ host: "127.0.0.1", port: 0 }, services, { ...letsAllIn, ...options }));
  return { address: server.address, over };
}

function reader(address: string, by: ChannelCredentials = credentials.createInsecure()) {
  const client = new Client(address, by);
  stack.defer(() => client.close());
  const call = client.makeServerStreamRequest(
    path,
    asBytes.requestSerialize,
    asBytes.responseDeserialize,
    Buffer.alloc(0),
  );
  const came: string[] = [];
  call.on("metadata", (metadata) => came.push(`metadata ${metadata.get("head")}`));
  call.on("data", (message: Buffer) => came.push(String(message))).on("error", () => {});
  const end = new Promise<StatusObject>((resolve) => call.on("status", resolve));
  return { call, came, end };
}

const texts = (...some: readonly string[]) => some.map((text) => Buffer.from(text));

async function* threeGroups() {
  yield texts("one", "two", "");
  yield texts("alone");
  yield [Buffer.alloc(70_000, "x"), ...texts("behind a large one")];
}
const inOrder = ["metadata first", "one", "two", "", "alone", "x".repeat(70_000), "behind a large one"];

it.each([
  ["in groups", []],
  ["one by one, where grpc-js has no stream for us", [messageGroups]],
])("metadata, messages and trailers come in their order, written %s", async (_how, interceptors) => {
  const { address } = await serve(threeGroups, { interceptors });
  const { came, end } = reader(address);
  const { code, metadata } = await end;
  expect(came).toEqual(inOrder);
  expect({ code, trailer: metadata.get("trailer") }).toEqual({ code: 0, trailer: ["last"] });
});

it("so they do over TLS", async () => {
  const folder = stack.use(await temporaryFolder());
  const { certFile, keyFile } = await testCertificate(folder.folder, ["127.0.0.1"]);
  const files = { cert: certFile, key: keyFile, setting: "tls" } as const;
  const certificate = stack.use(openCertificate(files, { warn: () => {} }));
  const { address } = await serve(threeGroups, { certificate });
  const { came, end } = reader(address, credentials.createSsl(readFileSync(certFile)));
  expect((await end).code).toBe(0);
  expect(came).toEqual(inOrder);
});

it("an error in the middle comes behind the messages before it", async () => {
  async function* failing() {
    yield texts("one", "two");
    throw new TapedeckError("not_found", "the third is gone");
  }
  const { address } = await serve(failing);
  const { came, end } = reader(address);
  expect(await end).toMatchObject({ code: 5, details: "the third is gone" });
  expect(came).toEqual(["metadata first", "one", "two"]);
});

it("the source of a call that is cancelled is closed", async () => {
  let isClosed = false;
  async function* endless() {
    try {
      for (;;) yield texts("one", "two");
    } finally {
      isClosed = true;
    }
  }
  const { address, over } = await serve(endless);
  const { call, came } = reader(address);
  await until(() => came.length > 100, { message: "some messages" });
  call.cancel();
  await until(() => isClosed && over.length === 1, { message: "the call to be over" });
});

it("nothing is written behind the end of a call whose token is revoked", async () => {
  const revoked = new AbortController();
  async function* endless() {
    for (;;) yield texts("one", "two");
  }
  const { address, over } = await serve(endless, {
    authenticate: async () => ({ workspace: "acme", who: "alice", kind: "token", revoked: revoked.signal }),
  });
  const { came, end } = reader(address);
  await until(() => came.length > 100, { message: "some messages" });
  revoked.abort(new TapedeckError("unauthenticated", "the token was revoked"));
  expect(await end).toMatchObject({ code: 16, details: "the token was revoked" });
  await until(() => over.length === 1, { message: "the call to be over" });
});

it("a client that does not read stops the source, and gets everything when it does", async () => {
  const [groups, each] = [400, 100];
  let given = 0;
  async function* numbered() {
    for (let group = 0; group < groups; group++) {
      given++;
      yield Array.from({ length: each }, (_, index) => Buffer.alloc(100, `${group * each + index} `));
    }
  }
  const { address } = await serve(numbered);
  const { call, came, end } = reader(address);
  call.pause();
  // HTTP/2 takes some without asking anybody; the rest waits.
  await until(() => given > 10, { message: "the first groups" });
  expect(given).toBeLessThan(groups / 2);
  call.resume();
  expect((await end).code).toBe(0);
  expect(came).toHaveLength(1 + groups * each);
  expect(came.at(-1)).toMatch(/^39999 /);
});

it("a group is written at once, as HTTP/2 has it, and not compressed", async () => {
  const messages = Array.from({ length: 500 }, (_, index) => Buffer.alloc(100, `${index} `));
  async function* oneGroup() {
    yield messages;
  }
  const { address } = await serve(oneGroup);
  const session = connect(`http://${address}`);
  stack.defer(() => session.destroy());
  const head = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
  const stream = session.request({ ...head, "grpc-accept-encoding": "gzip" });
  stream.end(Buffer.alloc(5));
  const frames: Buffer[] = await Array.fromAsync(stream);
  const expected = messages.map((message) => Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]));
  expect(Buffer.concat(frames).equals(Buffer.concat(expected))).toBe(true);
  // One by one there is a frame for each message. Without the private field of grpc-js it would be so.
  expect(frames.length).toBeLessThan(50);
});
