import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { eventToJson } from "@tapedeck/shared/events/json";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { expect, it } from "vitest";
import { toCloudEvent } from "../../transports/http/cloud-events.ts";
import { firstOpening, noReader } from "../testing/no-reader.ts";
import type { FormattedSink } from "./format.ts";
import { newSigningSecret, signatureHeaders, signingSecretError } from "./standard-signature.ts";
import { webhook } from "./webhook.ts";

const epoch = "gcj869";
const sink = {
  workspace: "李",
  name: "hook",
  mode: "batched",
  filter: {},
  live: false,
  secret: undefined,
  epoch,
  page: "",
} as const;
const requestsOf = (opened: FormattedSink) =>
  webhook.open(opened, noReader, firstOpening).requests(events, new AbortController().signal);

const eventAt = (sequence: number, more: Partial<Event> = {}) => {
  const event = Event.fromPartial({
    id: `s.v1.${sequence}`,
    source: "李/alice/shop/skaffold",
    session: "s",
    channel: "v1",
    ordinal: BigInt(sequence),
    kind: "build.failed",
    summary: 'it said "no"\n',
    ...more,
  });
  const recorded = { offset: offsetOf(sequence), recordedAt: new Date(sequence), subject: "", event };
  return { recorded, position: formatPosition({ epoch, offset: recorded.offset }) };
};

const events = [
  eventAt(7),
  eventAt(8, { subject: 'we"b', occurred_at: { seconds: 1n, nanos: 123_456_789 } }),
  eventAt(9, { observed_at: { seconds: 2n, nanos: 0 } }),
];

it("writes the CloudEvents that the API gives, as a batch or one by one", async () => {
  const expected = events.map(({ recorded }) => toCloudEvent(eventToJson(recorded, epoch)));
  const [batch, ...more] = await requestsOf(sink);
  expect(more).toEqual([]);
  expect(JSON.parse(String(batch?.body))).toEqual(expected);
  expect(batch).toMatchObject({ id: "1700-gcj869_1900-gcj869", covers: 3 });
  expect(batch?.headers["content-type"]).toMatch(/^application\/cloudevents-batch\+json/);

  const single = await requestsOf({ ...sink, mode: "structured" });
  expect(single.map(({ body }) => JSON.parse(String(body)))).toEqual(expected);
  expect(single.map(({ id, covers }) => [id, covers])).toEqual([
    ["1700-gcj869", 1],
    ["1800-gcj869", 2],
    ["1900-gcj869", 3],
  ]);
});

it("signs as the reference library of Standard Webhooks does", () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
  const request = { id: "32bl00-gcj869", body: Buffer.from('{"specversion":"1.0","subject":"wéb"}') };
  expect(signatureHeaders(secret, request, new Date("2026-01-31T12:00:00.900Z"))).toEqual({
    "webhook-id": "32bl00-gcj869",
    "webhook-timestamp": "1769860800",
    "webhook-signature": "v1,+/pqUNvfO4lUQrQ34N6L9zeUTNACAUREfkbrWYLzqfk=",
  });
});

it("takes secrets of 24 to 64 bytes, and makes such", () => {
  expect(signingSecretError(newSigningSecret())).toBeUndefined();
  expect(signingSecretError(Buffer.alloc(24).toString("base64"))).toBeUndefined();
  for (const wrong of ["", "whsec_", "whsec_äö", `whsec_${Buffer.alloc(23).toString("base64")}`, "x".repeat(100)]) {
    expect(signingSecretError(wrong), wrong).toMatch(/is not|does not have/);
  }
});
