import { credentials, Metadata } from "@grpc/grpc-js";
import { type PushResponse, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it, onTestFinished } from "vitest";
import { startPushServer } from "./push-server.ts";
import type { Recorder } from "./recorder.ts";

const welcome: PushResponse = { body: { $case: "welcome", value: { source: "a/b/c/skaffold", committed: 0n } } };

/** Welcomes every push, and keeps those that it was asked to end. */
function patientRecorder() {
  const over: string[] = [];
  const push: Recorder["push"] = async function* (_, { workspace, signal }) {
    yield welcome;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    over.push(workspace);
  };
  return { push, over };
}

function pushTo(port: number, workspace: string) {
  const client = new RecorderClient(`127.0.0.1:${port}`, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
  });
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  metadata.set("tapedeck-workspace", workspace);
  const reported = { welcomed: false };
  client
    .push(metadata)
    .on("data", () => {
      reported.welcomed = true;
    })
    .on("error", () => {});
  return reported;
}

it("a push over a network that swallows everything is found to be over, while one that is only quiet lives", async () => {
  const recorder = patientRecorder();
  await using server = await startPushServer({
    host: "127.0.0.1",
    port: 0,
    connectionLimits: { connections: 10, arrivalMs: 60_000 },
    key: "",
    workspace: "default",
    recorder,
    stores: () => undefined,
    retentions: { *all() {}, async *set() {} },
    waiting: () => [],
    onInternal: () => {},
    liveness: { quietMs: 50, silentMs: 3_000 },
  });
  const port = Number(server.address.split(":")[1]);
  await using proxy = await lossyProxy(port);
  const [cut, quiet] = [pushTo(proxy.port, "cut"), pushTo(port, "quiet")];
  await until(() => cut.welcomed && quiet.welcomed, { message: "the welcomes" });
  // The server's pings among it.
  proxy.deaf = true;
  await until(() => recorder.over.length > 0, { message: "the push to be over" });
  expect(recorder.over).toEqual(["cut"]);
});
