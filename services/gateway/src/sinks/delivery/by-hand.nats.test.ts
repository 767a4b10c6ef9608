import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startReceiver } from "../testing/receiver.ts";
import { startSinkHarness } from "../testing/sink-harness.ts";
import { retryParked } from "./by-hand.ts";

const loop = (number: number): Partial<Event> => ({
  kind: "loop.failed",
  operation: { kind: "loop", subject: "", runner: 1, loop: number },
});

it("a retry goes on after a parked event that can't be written, and says why it can't", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  const alice = harness.writer("alice");
  // OTLP has no time before 1970.
  await alice.append(1, { ...loop(1), occurred_at: { seconds: -5n, nanos: 0 } });
  await alice.append(1, loop(2));
  let isRefused = true;
  receiver.answer = ({ bytes }) => ({ status: isRefused && bytes.byteLength > 100 ? 400 : 200 });
  await gateway.add("traces", receiver, { format: "otlp" });
  const parked = async () => (await gateway.sink("traces"))?.parked;
  await until(async () => (await parked()) === 2, { message: "both events to be parked" });
  isRefused = false;
  const { status, body } = await gateway.call("POST", "/traces/parked/retry", {});
  expect([status, body]).toMatchObject([
    200,
    {
      items: [
        { outcome: "refused", status: null, error: expect.stringMatching(/^the event can't be written: /) },
        { outcome: "delivered", status: 200 },
      ],
      left: 0,
    },
  ]);
  expect(await parked()).toBe(1);
});

it("an event whose retry is left before it was sent is not delivered", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await harness.writer("alice").append(1, loop(1));
  const definition = {
    target: receiver.url,
    format: "webhook" as const,
    mode: "batched" as const,
    filter: {},
    headers: {},
    start: "now",
    createdAt: "",
  };
  const retried = await retryParked(
    { workspace: "default", sink: "hook", definition, generation: undefined },
    { log: harness.log.reader, offset: offsetOf(1) },
    { settings: { allowed: ["127.0.0.1"], page: "" }, causeOf: async () => undefined },
    AbortSignal.abort(),
  );
  expect(retried.accepted).toBe(false);
  expect(receiver.requests).toEqual([]);
});
