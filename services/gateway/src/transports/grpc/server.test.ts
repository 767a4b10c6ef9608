import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:http2";
import { createInterface } from "node:readline";
import type { ServerWritableStream } from "@grpc/grpc-js";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it } from "vitest";
import { defaultLimits } from "../../limits/settings.ts";
import { grpcServer } from "./server.ts";
import { callSignal, writeAll } from "./server-stream.ts";
import { letsAllIn } from "./testing/lets-all-in.ts";

const asIs = (bytes: Buffer) => bytes;
const path = "/test.Flood/Read";
/** A machine that is busy elsewhere for a second is not taken for a peer that is gone. */
const impatient = { quietMs: 250, silentMs: 2_000 };

const stack = { current: new AsyncDisposableStack() };
afterEach(async () => {
  await stack.current.disposeAsync();
  stack.current = new AsyncDisposableStack();
});

/** A server whose only method never ends: it gives messages of this size as long as they are taken. */
async function flood(messageBytes: number) {
  const reported = { bytes: 0, over: false };
  const message = Buffer.alloc(messageBytes);
  async function* endless() {
    for (;;) yield message;
  }
  const read = async (call: ServerWritableStream<Buffer, Buffer>) => {
    const signal = callSignal(call);
    await writeAll(call, endless(), signal, {
      unreadBytes: defaultLimits.unreadBytes,
      sent: (bytes) => {
        reported.bytes += bytes;
      },
    });
    reported.over = true;
  };
  const definition = {
    read: {
      path,
      requestStream: false,
      responseStream: true,
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    },
  };
  const services = [{ definition, handlers: { read }, names: ["test.Flood"] }];
  const server = stack.current.use(
    await grpcServer({ host: "127.0.0.1", port: 0 }, services, { ...letsAllIn, liveness: impatient }),
  );
  return { address: server.address, reported };
}

function reader(address: string) {
  const session = connect(`http://${address}`);
  stack.current.defer(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("error", () => {}).end(Buffer.alloc(5));
  session.on("error", () => {});
  return { session, stream };
}

it.each([
  [1_000, defaultLimits.unreadBytes],
  [700_000, defaultLimits.unreadBytes],
  [6 << 20, 6 << 20],
])("of messages of %i bytes a client that does not read costs no more than it may", async (size, max) => {
  const { address, reported } = await flood(size);
  const { session, stream } = reader(address);
  await once(stream, "response");
  let pings = 0;
  session.on("ping", () => pings++);
  // Much longer than what counts as silent: who reads nothing, but answers pings, is let be.
  const longAfter = performance.now() + 1.5 * impatient.silentMs;
  await until(() => pings >= 8 && performance.now() > longAfter, { message: "8 pings, and longer than that" });
  const windows = 256 * 1024; // what HTTP/2 takes without asking anybody
  expect(reported.bytes).toBeGreaterThan(0);
  expect(reported.bytes).toBeLessThanOrEqual(max + windows + size);
  expect(reported.over).toBe(false);

  let got = 0;
  stream.on("data", (chunk: Buffer) => {
    got += chunk.byteLength;
  });
  await until(() => got > 3 * max, { message: "it to read on" });
});

it("a peer that is gone is noticed, though its connection is still open", async () => {
  const { address, reported } = await flood(1_000);
  const program = `
    const stream = require("node:http2").connect("http://${address}").request({ ":method": "POST", ":path": "${path}", "content-type": "application/grpc", te: "trailers" });
    stream.end(Buffer.alloc(5));
    stream.once("data", () => console.log("reading"));`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  stack.current.defer(() => void child.kill("SIGKILL"));
  await once(createInterface(child.stdout), "line");
  child.kill("SIGSTOP");
  await until(() => reported.over, { message: "the call to be over" });
});

it("a taken port is one sentence", async () => {
  const { address } = await flood(1);
  const port = Number(address.split(":")[1]);
  await expect(grpcServer({ host: "127.0.0.1", port }, [], letsAllIn)).rejects.toThrow(
    `port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`,
  );
});
