import { credentials, Metadata } from "@grpc/grpc-js";
import { LogEntry, MetaEvent } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type PushResponse, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, it, onTestFinished } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

// This test uses the real timeouts, which is why it takes so long.

const promisedMs = 30_000;
/** Extra time for a busy machine. */
const spareMs = 12_000;

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({});
});
afterAll(() => stack[Symbol.asyncDispose]());

/** Pushes the beginning of a session through a network that then drops all data from the server. */
async function cutOff(address: string, developer: string): Promise<void> {
  const proxy = await lossyProxy(Number(address.split(":")[1]));
  onTestFinished(() => proxy[Symbol.asyncDispose]());
  const client = new RecorderClient(`127.0.0.1:${proxy.port}`, credentials.createInsecure(), {
    "grpc.use_local_subchannel_pool": 1,
  });
  onTestFinished(() => client.close());
  const metadata = new Metadata();
  metadata.set("tapedeck-key", "test-key");
  metadata.set("tapedeck-workspace", "default");
  const call = client.push(metadata);
  const committed = Promise.withResolvers<void>();
  call.on("error", committed.reject);
  call.on("data", ({ body }: PushResponse) => {
    if (body?.$case === "committed" && body.value.index === 2n) committed.resolve();
  });
  const hello = { developer, project: "shop", upstream: "skaffold", tap: developer, labels: {}, redact: "on" };
  call.write({ body: { $case: "hello", value: { ...hello, first_index: 1n, settings: {} } } });
  const at = { seconds: BigInt(Math.floor(Date.now() / 1_000)), nanos: 0 };
  const dialled = { $case: "dialled" as const, value: { address: "127.0.0.1:50051", channels: ["v1"] } };
  call.write({ body: { $case: "item", value: { index: 1n, connection: "C1", at, what: dialled } } });
  const started = {
    $case: "metaEvent" as const,
    value: MetaEvent.fromPartial({ entry: "Starting Skaffold: ", metadata: {} }),
  };
  const bytes = Buffer.from(
    LogEntry.encode(LogEntry.fromPartial({ timestamp: at, event: { event_type: started } })).finish(),
  );
  const frame = { $case: "frame" as const, value: { channel: "v1", bytes, more: false } };
  call.write({ body: { $case: "item", value: { index: 2n, connection: "C1", at, what: frame } } });
  await committed.promise;
  proxy.deaf = true;
}

it.concurrent.each([
  ["the gateway", "gina", () => stack.grpc],
  ["ingest", "ines", () => stack.parts.ingest.addresses.grpc ?? ""],
])("a recorder that %s does not hear any more is lost within 30 s", async (_, developer, address) => {
  await cutOff(address(), developer);
  await until(
    async () => {
      const { body } = await stack.httpCall("GET", `/api/v1/sources?source=${developer}/shop`);
      const { items } = JSON.parse(body) as { readonly items: readonly { readonly status: string }[] };
      return items[0]?.status === "lost";
    },
    { message: `${developer} to be lost`, deadlineMs: promisedMs + spareMs },
  );
});
