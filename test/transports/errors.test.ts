import { jetstreamManager } from "@nats-io/jetstream";
import { scenario } from "@tapedeck/query/testing/scenario";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { connect } from "nats";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { transports } from "./all-transports.ts";
import { refusalOf } from "./reading.ts";
import type { Endpoint, ErrorBody, StreamRequest, Transport } from "./transport.ts";

// The error table, for subscriptions: the same code and details on every transport, in its own status.

const storyOf = (developer: string) =>
  scenario(sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" }));
const alice = storyOf("alice");
const bob = storyOf("bob");

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let endpoint: Endpoint;

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  endpoint = { grpc: on.stack.grpc, http: on.stack.http };
  for (const [one, id] of [
    [bob, "01B1"],
    [alice, "01A1"],
  ] as const) {
    const session = one.session(id);
    session.started();
    session.configured();
    session.loopStarted();
  }
  await on.seed([...bob.events, ...alice.events]);
});
afterAll(() => cleanup.disposeAsync());

/** A WebSocket has no status for a subscription. */
const statusOf = ({ name }: Transport, grpc: number, http: number) =>
  name === "WebSocket" ? {} : { status: name === "gRPC" ? grpc : http };

const ofAlice = { sources: ["alice/shop"] };

describe.each(transports)("over $name", (transport) => {
  it.each<[code: string, grpc: number, http: number, request: StreamRequest, details: Partial<ErrorBody>]>([
    ["position_future", 11, 416, { after: "FUTURE" }, { field: "after", latest: "LAST" }],
    ["position_foreign", 9, 409, { after: "1100-zzzzzz" }, { field: "after" }],
    ["position_future", 11, 416, { state: true, after: "FUTURE", filter: ofAlice }, { field: "after", latest: "LAST" }],
    ["position_foreign", 9, 409, { state: true, after: "1100-zzzzzz", filter: ofAlice }, { field: "after" }],
    ["unknown_source", 5, 404, { state: true, filter: { sources: ["nobody/shop"] } }, {}],
    ["unknown_session", 5, 404, { state: true, filter: { ...ofAlice, sessions: ["01ZZ"] } }, {}],
    ["before_first", 5, 404, { state: true, after: "FIRST", filter: ofAlice }, { earliest: "ALICE" }],
    ["ambiguous_source", 9, 409, { state: true }, { choices: ["acme/alice/shop/skaffold", "acme/bob/shop/skaffold"] }],
    ["invalid_argument", 3, 400, { after: "yesterday" }, { field: "after" }],
    ["invalid_argument", 3, 400, { state: true, after: "yesterday", filter: ofAlice }, { field: "after" }],
    ["invalid_argument", 3, 400, { until: "start" }, { field: "until" }],
    ["position_future", 11, 416, { until: "FUTURE" }, { field: "until", latest: "LAST" }],
    ["invalid_argument", 3, 400, { speed: 0 }, { field: "speed" }],
    ["invalid_argument", 3, 400, { speed: -1 }, { field: "speed" }],
    ["invalid_argument", 3, 400, { speed: 1_001 }, { field: "speed" }],
    ["invalid_argument", 3, 400, { filter: { kinds: ["Build!"] } }, { field: "filter.kinds" }],
    ["invalid_argument", 3, 400, { filter: { sources: ["shop"] } }, { field: "filter.sources" }],
    ["invalid_argument", 3, 400, { filter: { outcomes: ["bad"] } }, { field: "filter.outcomes" }],
    ["invalid_argument", 3, 400, { after: "start", state: true, filter: ofAlice }, { field: "after" }],
  ])("%s (gRPC %i, HTTP %i): %j", async (code, grpc, http, request, details) => {
    const places = { FUTURE: 9_999, LAST: 6, FIRST: 1, ALICE: 4 };
    const filledIn = <T>(value: T): T =>
      JSON.parse(
        JSON.stringify(value).replace(/FUTURE|LAST|FIRST|ALICE/g, (name) => {
          const seq = places[name as keyof typeof places];
          return name === "LAST" ? on.endAt(seq) : on.at(seq);
        }),
      ) as T;
    const refusal = await refusalOf(transport, endpoint, filledIn(request));
    expect(refusal).toMatchObject({ code, ...filledIn(details), ...statusOf(transport, grpc, http) });
    expect(refusal.message).toMatch(/\w+ \w+/);
  });
});

describe("in trouble", () => {
  it("an unexpected error is `internal` and reveals no detail", async () => {
    const database = new Client(on.stack.database);
    await database.connect();
    await database.query("alter table tapedeck.sources rename to elsewhere");
    for (const transport of transports) {
      const refusal = await refusalOf(transport, endpoint, { state: true, filter: ofAlice });
      expect(refusal).toMatchObject({ code: "internal", message: "internal error", ...statusOf(transport, 13, 500) });
    }
    await database.query("alter table tapedeck.elsewhere rename to sources");
    await database.end();
  });

  it("a position before the first kept event is `out_of_range`, with the earliest one", async () => {
    const connection = await connect({ servers: on.stack.parts.nats.url });
    await (await jetstreamManager(connection)).streams.purge(streamOf("acme"), { seq: 5 });
    await connection.close();
    const expected = { code: "out_of_range", field: "after", earliest: on.endAt(4) };
    // Bob's state at 3 is still known, but not everything after it.
    const requests = [{ after: on.at(1) }, { after: on.at(3), state: true, filter: { sources: ["bob/shop"] } }];
    for (const transport of transports) {
      for (const request of requests) {
        const refusal = await refusalOf(transport, endpoint, request);
        expect(refusal).toMatchObject({ ...expected, ...statusOf(transport, 11, 410) });
      }
    }
  });

  it("without query, state is `not_ready`", async () => {
    await on.stack.parts.query[Symbol.asyncDispose]();
    for (const transport of transports) {
      const refusal = await refusalOf(transport, endpoint, { state: true, filter: ofAlice });
      // EventSource gets temporary errors as a message.
      const status = transport.name === "server-sent events" ? {} : statusOf(transport, 14, 503);
      expect(refusal).toMatchObject({ code: "not_ready", ...status });
    }
  });
});
