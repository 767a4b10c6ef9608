import { expect, it } from "vitest";
import { readDelivery } from "./consumer.ts";

it("the time of a message is never rounded up", () => {
  const at = (nanoseconds: string) => readDelivery(`$JS.ACK.TAPEDECK.c.1.42.7.${nanoseconds}.3`);
  expect(at("1795233345000999990")).toEqual({ seq: 42, deliverySeq: 7, recordedAtMs: 1_795_233_345_000 });
  expect(at("1795233345001000000")?.recordedAtMs).toBe(1_795_233_345_001);
});
