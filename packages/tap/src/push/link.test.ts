import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { credentials, type handleBidiStreamingCall, Metadata, Server, ServerCredentials } from "@grpc/grpc-js";
import { type PushRequest, type PushResponse, RecorderService } from "@tapedeck/proto/tapedeck/v1/recorder";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it, onTestFinished } from "vitest";
import { gatewayLink } from "./link.ts";

const welcome: PushResponse = { body: { $case: "welcome", value: { source: "a/b/c/skaffold", committed: 0n } } };

async function welcoming(): Promise<number> {
  const push: handleBidiStreamingCall<PushRequest, PushResponse> = (call) => void call.write(welcome);
  const server = new Server();
  server.addService(RecorderService, { push });
  onTestFinished(() => server.forceShutdown());
  return new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
}

/** What comes down a push that says nothing, and how it ends. */
function pushTo(port: number, { options = {}, connectMs = 20_000 } = {}) {
  async function* nothing(): AsyncGenerator<PushRequest> {
    await new Promise(() => {});
  }
  const gateway = { address: `127.0.0.1:${port}`, credentials: credentials.createInsecure(), metadata: new Metadata() };
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const reported = { responses: 0, error: undefined as unknown };
  const read = async () => {
    for await (const _ of gatewayLink({ ...gateway, options }, connectMs)(nothing(), stop.signal)) reported.responses++;
  };
  read().catch((error: unknown) => {
    reported.error = error;
  });
  return reported;
}

it("a connection that swallows everything is noticed by pings, while one that is only quiet lives", async () => {
  await using proxy = await lossyProxy(await welcoming());
  // An answer may come as late as this where the machine is busy.
  const options = { "grpc.keepalive_time_ms": 50, "grpc.keepalive_timeout_ms": 3_000 };
  const [lost, quiet] = [pushTo(proxy.port, { options }), pushTo(await welcoming(), { options })];
  await until(() => lost.responses === 1 && quiet.responses === 1, { message: "the welcomes" });
  proxy.deaf = true;
  await until(() => lost.error, { message: "the loss to be noticed" });
  expect(lost.error).toMatchObject({ code: 14 });
  expect(quiet.error).toBeUndefined();
});

it("somebody who takes a connection and says nothing is given up", async () => {
  const server = createServer(() => {}).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const mute = pushTo((server.address() as AddressInfo).port, { connectMs: 100 });
  await until(() => mute.error, { message: "it to be given up" });
  expect(mute.error).toMatchObject({ message: "no answer within 0.1 s" });
});
