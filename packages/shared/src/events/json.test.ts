import { Event, Original } from "@tapedeck/proto/tapedeck/v1/event";
import { expect, it } from "vitest";
import type { RecordedEvent } from "../log/log.ts";
import { offsetOf } from "../log/offset.ts";
import { eventToJson } from "./json.ts";

const at = (seconds: number, nanos: number) => ({ seconds: BigInt(seconds), nanos });

const recorded = (event: Partial<Event>): RecordedEvent => ({
  offset: offsetOf(10_482),
  recordedAt: new Date("2026-11-20T17:00:00.120Z"),
  subject: "",
  event: Event.fromPartial({
    id: "s.v1.7",
    source: "acme/alice/shop/skaffold",
    session: "s",
    channel: "v1",
    ordinal: 7n,
    frame_ordinal: 3n,
    kind: "build.failed",
    summary: "web failed to build",
    ...event,
  } as Event),
});

const json = (event: Partial<Event>, options?: { original?: boolean }) =>
  JSON.parse(JSON.stringify(eventToJson(recorded(event), "t3k9x2", options)));

const identity = {
  position: "383600-t3k9x2",
  recordedAt: "2026-11-20T17:00:00.120Z",
  id: "s.v1.7",
  source: "acme/alice/shop/skaffold",
  session: "s",
  channel: "v1",
  ordinal: 7,
  frameOrdinal: 3,
  part: 0,
  kind: "build.failed",
  summary: "web failed to build",
};

it("unknown fields are omitted", () => {
  expect(json({})).toEqual(identity);
});

it("times keep their nanoseconds, enums are the API's words", () => {
  const event = json({
    subject: "web",
    outcome: 2,
    error: { code: "BUILD_USER_ERROR", message: "no", suggestions: ["fix it"] },
    occurred_at: at(1_795_194_000, 123_456_789),
    time_source: 3,
    not_before: at(1_795_193_999, 0),
    observed_at: at(1_795_194_000, 500_000_000),
    operation: { kind: "build", subject: "web", runner: 1, loop: 2 },
    inferred: true,
    redacted: 1,
  });
  expect(event).toEqual({
    ...identity,
    subject: "web",
    outcome: "failed",
    error: { code: "BUILD_USER_ERROR", message: "no", suggestions: ["fix it"] },
    occurredAt: "2026-11-20T17:00:00.123456789Z",
    timeSource: "interval",
    notBefore: "2026-11-20T16:59:59Z",
    observedAt: "2026-11-20T17:00:00.500Z",
    operation: { kind: "build", subject: "web", runner: 1, loop: 2 },
    inferred: true,
    redacted: 1,
  });
});

it("the detail is one object, and map keys in it are unchanged", () => {
  const value = {
    labels: { git_branch: "main" },
    redact: "on",
    upstream_version: "v2.16.1",
    reason: "",
    fingerprint_channel: "v1",
    fingerprint_at: at(1, 5),
    fingerprint_sha256: Buffer.from([1, 2, 3]),
    states: { v1: Buffer.from("ab") },
  };
  const event = json({ kind: "session.started", detail: { $case: "session_detail", value } } as Partial<Event>);
  expect(event.detail).toEqual({
    labels: { git_branch: "main" },
    redact: "on",
    upstreamVersion: "v2.16.1",
    reason: "",
    fingerprintChannel: "v1",
    fingerprintAt: "1970-01-01T00:00:01.000000005Z",
    fingerprintSha256: "AQID",
    states: { v1: "YWI=" },
  });
});

it("the upstream's bytes are included only on request", () => {
  const original = Original.fromPartial({ type: "proto.LogEntry", bytes: Buffer.from([255, 0]), size: 2n });
  expect(json({ original })).not.toHaveProperty("original");
  expect(json({ original }, { original: true }).original).toEqual({ type: "proto.LogEntry", bytes: "/wA=", size: 2 });
  const tooLarge = Original.fromPartial({ type: "proto.LogEntry", size: 9_000_000n });
  expect(json({ original: tooLarge }, { original: true }).original).toEqual({
    type: "proto.LogEntry",
    size: 9_000_000,
  });
});
