import { expect, it } from "vitest";
import { grpcLiveness, keepaliveOptions, recorderTimeouts } from "./peer-liveness.ts";

it("a recorder that is cut off silently is lost within 30 s", () => {
  const options = keepaliveOptions(grpcLiveness);
  // The worst case: it has just answered a ping.
  const found = options["grpc.keepalive_time_ms"] + options["grpc.keepalive_timeout_ms"];
  expect(found + recorderTimeouts.noticeMs + recorderTimeouts.slackMs).toBeLessThanOrEqual(30_000);
  expect(recorderTimeouts.lostWithinMs).toBe(30_000);
});
