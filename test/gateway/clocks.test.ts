import { credentials } from "@grpc/grpc-js";
import { LogEntry, MetaEvent } from "@tapedeck/proto/skaffold/v1/skaffold";
import { type PushResponse, RecorderClient } from "@tapedeck/proto/tapedeck/v1/recorder";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

type SourceItem = { readonly developer: string; readonly clockOffsetMs: number | null };

const dayMs = 24 * 3_600_000;

it("a clock that is more than a minute off is noticed, and one that is right is not", async () => {
  await using stack = await startStack({});
  const client = new RecorderClient(stack.grpc, credentials.createInsecure());
  const items = async (): Promise<readonly SourceItem[]> =>
    JSON.parse((await stack.httpCall("GET", "/api/v1/sources")).body).items;
  for (const [developer, offsetMs] of [
    ["ahead", dayMs],
    ["right", 0],
    ["behind", -dayMs],
  ] as const) {
    const call = client.push();
    call.on("error", () => {});
    const committed = Promise.withResolvers<void>();
    call.on("data", ({ body }: PushResponse) => {
      if (body?.$case === "committed" && body.value.index >= 2n) committed.resolve();
    });
    const at = { seconds: BigInt(Math.floor((Date.now() + offsetMs) / 1_000)), nanos: 0 };
    const meta = MetaEvent.fromPartial({ entry: "Starting Skaffold: ", metadata: {} });
    const entry = LogEntry.fromPartial({ timestamp: at, event: { event_type: { $case: "metaEvent", value: meta } } });
    const hello = { developer, project: "shop", upstream: "skaffold", tap: developer, labels: {}, redact: "on" };
    call.write({ body: { $case: "hello", value: { ...hello, first_index: 1n, settings: {} } } });
    const dialled = { $case: "dialled" as const, value: { address: "127.0.0.1:50051", channels: ["v1"] } };
    call.write({ body: { $case: "item", value: { index: 1n, connection: "C1", at, what: dialled } } });
    const bytes = Buffer.from(LogEntry.encode(entry).finish());
    const what = { $case: "frame" as const, value: { channel: "v1", bytes, more: false } };
    call.write({ body: { $case: "item", value: { index: 2n, connection: "C1", at, what } } });
    await committed.promise;
  }
  await stack.caughtUp();
  await until(async () => (await items()).length === 3, { message: "the sources to be listed" });
  const offsets = Object.fromEntries((await items()).map(({ developer, clockOffsetMs }) => [developer, clockOffsetMs]));
  expect(offsets.right).toBeNull();
  expect(Number(offsets.ahead)).toBeGreaterThan(dayMs - 60_000);
  expect(Number(offsets.behind)).toBeLessThan(60_000 - dayMs);
  client.close();
});
