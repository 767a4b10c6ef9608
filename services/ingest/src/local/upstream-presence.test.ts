import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import type { TapItem } from "@tapedeck/tap/tap";
import { expect, it } from "vitest";
import { UpstreamPresence } from "./upstream-presence.ts";

const item = (what: TapItem["what"]): TapItem => ({ connection: "C1", at: undefined, what });
const closed = item({ $case: "closed", value: { reason: "the connection was lost", process_ended: true } });
const never = new AbortController().signal;

it("an upstream has gone when its connection is closed and its port stays closed, and not before", async () => {
  const address = `127.0.0.1:${await ownPort()}`;
  const presence = new UpstreamPresence(address);
  presence.see(item({ $case: "dialled", value: { address, channels: ["v1"] } }));
  let checks = 0;
  const went = presence.went(() => ++checks > 1, never);
  expect(checks).toBe(0);
  presence.see(closed);
  await went;
  expect(checks).toBe(2);
});

it("an upstream that was connected for long has gone a second after its connection, and not at the first refusal", async () => {
  const address = `127.0.0.1:${await ownPort()}`;
  let [time, reads, checks] = [0, 0, 0];
  const presence = new UpstreamPresence(address, () => {
    reads++;
    return time;
  });
  presence.see(item({ $case: "dialled", value: { address, channels: ["v1"] } }));
  const went = presence.went(() => ++checks > 0, never);
  time = 3_600_000;
  presence.see(closed);
  // One when the connection was closed, and one after each probe.
  const before = reads;
  await until(() => reads >= before + 3 || checks > 0, { message: "two refused probes" });
  expect(checks).toBe(0);
  time += 1_000;
  await went;
  expect(checks).toBe(1);
});

it("nobody waits for an upstream that is connected once the tap is to stop", async () => {
  const address = `127.0.0.1:${await ownPort()}`;
  const presence = new UpstreamPresence(address);
  presence.see(item({ $case: "dialled", value: { address, channels: ["v1"] } }));
  const stop = new AbortController();
  let hasEnded = false;
  const went = presence
    .went(() => true, stop.signal)
    .then(() => {
      hasEnded = true;
    });
  expect(hasEnded).toBe(false);
  stop.abort();
  await until(() => hasEnded, { message: "the wait to end" });
  await went;
});
