import { once } from "node:events";
import { connect } from "node:http2";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, expect, it } from "vitest";
import { callerLimits } from "../../limits/limits.ts";
import { defaultLimits } from "../../limits/settings.ts";
import { asBytes } from "./byte-methods.ts";
import { callLimits } from "./call-limits.ts";
import { grpcServer } from "./server.ts";
import { letsAllIn } from "./testing/lets-all-in.ts";

const path = "/grpc.test.Echo/Say";
const questions = 1_000;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

it("of a stream that is open to everyone no more is read while its answers are not taken", async () => {
  const reported = { read: 0, taken: 0, waiting: 0 };
  const say = (call: ServerDuplexStream<Buffer, Buffer>) => {
    call.on("data", (question: Buffer) => {
      reported.read += 1;
      reported.waiting = Math.max(reported.waiting, reported.read - reported.taken);
      // The handler answers as reflection does: it does not wait until the client has taken the answer before.
      call.write(question, () => {
        reported.taken += 1;
      });
    });
    call.on("end", () => call.end());
  };
  const definition = { say: { path, requestStream: true, responseStream: true, ...asBytes } };
  const { failed } = letsAllIn;
  const interceptors = [callLimits({ limits: callerLimits(defaultLimits), failed })];
  const services = [{ definition, handlers: { say }, names: ["grpc.test.Echo"] }];
  const server = stack.use(await grpcServer({ host: "127.0.0.1", port: 0 }, services, { ...letsAllIn, interceptors }));

  const session = connect(`http://${server.address}`, { settings: { initialWindowSize: 0 } });
  stack.defer(() => session.destroy());
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
  const call = session.request(headers);
  const frame = Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]);
  call.end(Buffer.concat(Array.from({ length: questions }, () => frame)));
  await once(call, "response");
  await new Promise((resolve) => session.ping(resolve));
  await until(() => reported.waiting > 1, { message: "questions without answers" });

  let bytes = 0;
  call.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  session.settings({ initialWindowSize: 1 << 20 });
  await once(call, "end");
  expect(bytes).toBe(questions * frame.length);
  expect(reported.waiting).toBeLessThanOrEqual(20);
});
