import { jetstreamManager } from "@nats-io/jetstream";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { connect } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ApiHarness, pick, startApiHarness } from "../stack/api-harness.ts";

const cleanup = new AsyncDisposableStack();
let harness: ApiHarness;

beforeAll(async () => {
  harness = cleanup.use(await startApiHarness());
});
afterAll(() => cleanup.disposeAsync());

const get = (path: string) => harness.get(path);
const items = (path: string) => harness.items(path);
const positionOf: ApiHarness["positionOf"] = (event) => harness.positionOf(event);

describe("nothing of another workspace is visible", () => {
  it.each([
    "sources",
    "sessions",
    "operations",
    "events",
    "stats/builds?group=developer",
    "stats/loops?group=developer",
  ])("in %s", async (path) => {
    expect((await items(path)).length).toBeGreaterThan(0);
    expect(JSON.stringify(await items(path))).not.toMatch(/globex|carol|secret|01C1/);
  });

  it.each([
    "sources?source=globex/carol/site/skaffold",
    "sessions?session=01C1",
    "sessions?developer=carol",
    "operations?subject=secret",
    "events?session=01C1",
    "events?source=globex/carol/site/skaffold",
    "stats/builds?group=artifact&developer=carol",
  ])("by %s", async (path) => {
    expect(await items(path)).toEqual([]);
  });

  it("in the state of a source", async () => {
    expect(await get("state?source=globex/carol/site/skaffold")).toMatchObject({
      status: 404,
      body: { error: { code: "unknown_source" } },
    });
    expect(await get("state?source=alice/shop&session=01C1")).toMatchObject({
      status: 404,
      body: { error: { code: "unknown_session" } },
    });
  });
});

describe("a wrong request", () => {
  it.each([
    ["sources?kind=build", "kind"],
    ["sources?colour=red", "colour"],
    ["sources?source=alice", "filter.sources"],
    ["sources?limit=0", "limit"],
    ["sources?limit=1e2", "limit"],
    ["sources?limit=1001", "limit"],
    ["sources?page=next", "page"],
    ["sources?at=yesterday", "at"],
    ["sessions?label=branch", "label"],
    ["sessions?from=monday", "from"],
    ["operations?kind=build.failed", "kind"],
    ["operations?outcome=fine", "filter.outcomes"],
    ["events?kind=bild.*", "filter.kinds"],
    ["events?after=tomorrow", "after"],
    ["events?until=start", "until"],
    ["events?last=0", "last"],
    ["events?original=yes", "original"],
    ["events?at=now", "at"],
    ["stream?limit=3", "limit"],
    ["stream?state=true&developer=alice", "filter.sources"],
    ["stats/builds?group=colour", "group"],
    ["stats/builds?to=later", "to"],
    ["stats/loops?group=artifact", "group"],
    ["stats/loops?group=day&zone=Europe/Atlantis", "zone"],
    ["state?source=alice", "source"],
    ["state?source=alice/shop&min_position=here", "min_position"],
  ])("%s is answered with 400 and the name of the field", async (path, field) => {
    const { status, body } = await get(path);
    expect([status, body]).toEqual([
      400,
      { error: { code: "invalid_argument", message: expect.stringMatching(/\w+ \w+/), field } },
    ]);
  });

  it.each([
    ["state", 409, { code: "ambiguous_source", choices: ["acme/bob/shop/skaffold", "acme/alice/shop/skaffold"] }],
    ["state?source=zoe/shop", 404, { code: "unknown_source" }],
    ["state?source=alice/shop&session=01Z", 404, { code: "unknown_session" }],
    ["state?source=alice/shop&at=2020-01-01T00:00:00Z", 404, { code: "before_first", earliest: "FIRST" }],
    ["state?source=alice/shop&at=FUTURE", 416, { code: "position_future", latest: "LAST" }],
    ["state?source=alice/shop&at=1100-zzzzzz", 409, { code: "position_foreign" }],
    ["events?after=FUTURE", 416, { code: "position_future", latest: "LAST" }],
    ["events?until=FUTURE", 416, { code: "position_future", latest: "LAST" }],
    ["events?after=1100-zzzzzz", 409, { code: "position_foreign" }],
    ["stream?after=FUTURE", 416, { code: "position_future" }],
    ["nothing", 404, { code: "not_found" }],
  ])("%s is answered with the documented error and status %i", async (path, status, error) => {
    const places = { FIRST: positionOf(0), LAST: harness.on.endAt(harness.lastSeq), FUTURE: harness.on.at(9_999) };
    const filledIn = (text: string) => text.replace(/FIRST|LAST|FUTURE/, (name) => places[name as keyof typeof places]);
    const answer = await get(filledIn(path));
    const expected = JSON.parse(filledIn(JSON.stringify(error)));
    expect({ status: answer.status, error: answer.body.error }).toMatchObject({ status, error: expected });
  });

  it("methods other than GET and HEAD are refused with 405 and the allowed ones", async () => {
    for (const [path, methods] of Object.entries({ sources: "GET, HEAD", stream: "GET, HEAD", ws: "GET" })) {
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
        const { status, headers, body } = await harness.on.stack.httpCall(method, `/api/v1/${path}`);
        expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: methods });
        expect(JSON.parse(body)).toEqual({
          error: { code: "invalid_argument", message: expect.stringContaining(method) },
        });
      }
      const { status, body } = await harness.on.stack.httpCall("POST", `/api/v1/${path}/more`, {}, "{}");
      expect([status, JSON.parse(body).error.code]).toEqual([404, "not_found"]);
    }
  });
});

describe("missing data", () => {
  it("a position before the first kept event is out_of_range, with the earliest one", async () => {
    const connection = await connect({ servers: harness.on.stack.parts.nats.url });
    await (await jetstreamManager(connection)).streams.purge(streamOf("acme"), { seq: 4 });
    await connection.close();
    expect(await get(`events?after=${harness.on.at(1)}`)).toMatchObject({
      status: 410,
      body: { error: { code: "out_of_range", earliest: harness.on.endAt(3) } },
    });
    expect(pick("position", await items("events?limit=1"))).toEqual([harness.on.at(4)]);
  });

  it("an unreachable query service is not_ready, with the time to retry", async () => {
    await harness.on.stack.parts.query[Symbol.asyncDispose]();
    for (const path of ["sources", "state", "stats/builds", "stream?state=true"]) {
      const { status, headers, body } = await get(path);
      expect([status, headers["retry-after"], body.error?.code]).toEqual([503, "1", "not_ready"]);
    }
    expect(await get("events?limit=1")).toMatchObject({ status: 200 });
  });
});
