import { State } from "@tapedeck/proto/skaffold/v1/skaffold";
import { scenario } from "@tapedeck/query/testing/scenario";
import { endOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceName } from "@tapedeck/shared/source";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SkaffoldClient, skaffoldClient } from "../skaffold/client.ts";
import { infoOf, skaffoldRefusal } from "../stack/error-info.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

const sourceOf = (name: string) => {
  const [workspace = "", developer = "", project = ""] = name.split("/");
  return sourceName({ workspace, developer, project, upstream: "skaffold" });
};

/** Alice has two sessions, in the first of which api fails; Bob's first loop runs; Dave has no session; Carol is elsewhere. */
const alice = scenario(sourceOf("acme/alice/shop"));
const first = alice.session("01A1");
first.started({ branch: "main" });
first.configured();
first.loopStarted();
first.build("web", "started");
const half = alice.events.length;
first.build("web", "succeeded");
first.build("api", "started");
first.build("api", "failed");
first.loopEnded("failed");
first.ended();
const second = alice.session("01A2");
second.started();
second.configured();
second.loopStarted();
second.build("web", "started");

const bob = scenario(sourceOf("acme/bob/shop"));
const running = bob.session("01B1");
running.started();
running.configured();
running.loopStarted();
running.build("bobs", "started");

const dave = scenario(sourceOf("acme/dave/tools"));
dave.add({ kind: "source.added" });

const carol = scenario(sourceOf("globex/carol/site"));
const hers = carol.session("01C1");
hers.started();
hers.configured();
hers.build("secret", "started");

const getState = "/proto.SkaffoldService/GetState";
const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let client: SkaffoldClient;

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  client = cleanup.use(skaffoldClient(on.stack.grpc));
});
afterAll(() => cleanup.disposeAsync());

/** Query may be behind by more than a request waits: `not_ready` means to try again. */
const askWhenReady = (metadata: Record<string, string>) =>
  until(
    async () => {
      const answer = await ask(metadata);
      return answer.reason !== "not_ready" && answer;
    },
    { message: "query to be ready" },
  );

/** The same request over gRPC and over HTTP with headers must have the same answer, whatever it is. */
async function ask(metadata: Record<string, string> = {}) {
  const [grpc, http] = await Promise.all([
    client.unary(getState, new Uint8Array(), metadata),
    on.stack.httpCall("GET", "/v1/state", metadata),
  ]);
  if (grpc.code === 0) {
    expect(http.status).toBe(200);
    const artifacts = State.decode(grpc.bytes).buildState?.artifacts;
    const body = JSON.parse(http.body) as { buildState: { artifacts: Record<string, string> } | null };
    expect(body.buildState?.artifacts ?? {}).toEqual(artifacts ?? {});
    for (const name of ["tapedeck-position", "tapedeck-session", "tapedeck-session-ended"]) {
      expect(http.headers[name]).toBe(grpc.metadata.get(name)[0]);
    }
    return {
      artifacts,
      session: http.headers["tapedeck-session"],
      ended: http.headers["tapedeck-session-ended"],
      position: http.headers["tapedeck-position"],
    };
  }
  const { code, message, info } = skaffoldRefusal(http);
  expect({ code, message, info }).toEqual({ code: grpc.code, message: grpc.message, info: infoOf(grpc) });
  return { code, status: http.status, reason: info?.reason, more: info?.metadata, message };
}

it("without any recording the error is unknown_source and says what to do", async () => {
  const refusal = { code: 5, status: 404, reason: "unknown_source", message: expect.stringContaining("tapedeck run") };
  await until(async () => (await ask()).status === 404, { message: "query to have begun" });
  expect(await ask()).toMatchObject(refusal);
});

describe("with one source", () => {
  beforeAll(() => on.seed(alice.events));

  it("a request need not name it", async () => {
    expect(await ask()).toMatchObject({ artifacts: { web: "In Progress" }, session: "01A2", ended: undefined });
  });

  it("the next ones need not either", async () => {
    for (let n = 0; n < 3; n++) expect(await ask()).toMatchObject({ session: "01A2" });
  });
});

describe("with several sources", () => {
  beforeAll(() => on.seed([...bob.events, ...dave.events, ...carol.events]));

  it("a request without a name gets the choices, of its workspace only", async () => {
    const { more, ...refusal } = await ask();
    expect(refusal).toMatchObject({ code: 9, status: 409, reason: "ambiguous_source" });
    expect(more?.choices?.split(", ").sort()).toEqual([alice.source, bob.source, dave.source]);
  });

  it.each([["alice/shop"], ["alice/shop/skaffold"], ["acme/alice/shop/skaffold"], ["Alice/Shop"]])(
    "%s names Alice's source",
    async (source) => {
      expect(await ask({ "tapedeck-source": source })).toMatchObject({ session: "01A2" });
      const byParameter = await on.stack.httpCall("GET", `/v1/state?source=${encodeURIComponent(source)}`);
      expect(byParameter.headers["tapedeck-session"]).toBe("01A2");
    },
  );

  it.each([["zoe/shop"], ["alice/shop/rkt"], ["globex/carol/site/skaffold"], ["carol/site"]])(
    "%s is unknown, without a hint that it exists elsewhere",
    async (source) => {
      const message = `no skaffold source "${source}" has been recorded: GET /api/v1/sources lists the recorded ones`;
      expect(await ask({ "tapedeck-source": source })).toMatchObject({
        status: 404,
        reason: "unknown_source",
        message,
      });
    },
  );

  it.each([["alice"], ["a/b/c/d/e"]])("%s is not a source name", async (source) => {
    const refusal = { code: 3, status: 400, reason: "invalid_argument", more: { field: "source" } };
    expect(await ask({ "tapedeck-source": source })).toMatchObject(refusal);
  });

  it("a source without a session has the state that Skaffold has before its runner exists", async () => {
    expect(await ask({ "tapedeck-source": "dave/tools" })).toMatchObject({ artifacts: undefined, session: undefined });
    const { body } = await on.stack.httpCall("GET", "/v1/state?source=dave/tools");
    expect(JSON.parse(body)).toMatchObject({ buildState: null, deployState: null, forwardedPorts: {}, metadata: null });
  });
});

describe("a session", () => {
  const alices = { "tapedeck-source": "alice/shop" };

  it("that has ended keeps its last state", async () => {
    expect(await ask({ ...alices, "tapedeck-session": "01A1" })).toMatchObject({
      artifacts: { web: "Complete", api: "Failed" },
      session: "01A1",
      ended: "true",
    });
  });

  it.each([["01A9"], ["01B1"], ["01C1"]])("%s is not one of Alice's sessions", async (session) => {
    const refusal = { code: 5, status: 404, reason: "unknown_session" };
    expect(await ask({ ...alices, "tapedeck-session": session })).toMatchObject(refusal);
    const events = await on.stack.httpCall("GET", `/v1/events?source=alice/shop&session=${session}`);
    expect(skaffoldRefusal(events)).toMatchObject({ code: 5, info: { reason: "unknown_session" } });
  });

  it("that has ended ends its Events over gRPC and HTTP", async () => {
    const frames = alice.events.filter(({ session, channel }) => session === "01A1" && channel === "v1");
    const metadata = { ...alices, "tapedeck-session": "01A1" };
    const overGrpc = await client.all("/proto.SkaffoldService/Events", metadata);
    expect(overGrpc.map((bytes) => bytes.toString("base64"))).toEqual(
      frames.map(({ original }) => original?.bytes.toString("base64")),
    );
    const { body, headers } = await on.stack.httpCall("GET", "/v1/events", metadata);
    expect(body.trim().split("\n")).toHaveLength(frames.length);
    expect(headers).toMatchObject({ "tapedeck-session": "01A1", "tapedeck-position": on.at(0) });
  });
});

describe("a moment", () => {
  const alices = { "tapedeck-source": "alice/shop" };
  const seqOfHalf = half; // Alice's events are the log's first

  it("can be a position", async () => {
    const there = await ask({ ...alices, "tapedeck-at": on.at(seqOfHalf) });
    expect(there).toMatchObject({ artifacts: { web: "In Progress" }, session: "01A1", position: on.at(seqOfHalf) });
    expect(await ask({ ...alices, "tapedeck-at": on.at(seqOfHalf + 1) })).toMatchObject({
      artifacts: { web: "Complete" },
    });
  });

  it("can be a time with any zone, also when the URL turned its plus into a space", async () => {
    const daves = { "tapedeck-source": "dave/tools" };
    const seqs = await on.seed([dave.session("01D1").started(), dave.add({ kind: "upstream.lost", session: "01D1" })]);
    const [first = 0, last = 0] = seqs;
    const times: number[] = [];
    const both = on.stack.log.history(
      { afterOffset: endOf(first - 1), subjects: [] },
      endOf(last),
      new AbortController().signal,
    );
    for await (const { recordedAt } of both) times.push(recordedAt.getTime());
    const [begun = 0, time = 0] = times;
    const inZone = new Date(time + 3_600_000).toISOString().replace("Z", "+01:00");
    for (const at of [new Date(time).toISOString(), inZone]) {
      expect(await ask({ ...daves, "tapedeck-at": at })).toMatchObject({ session: "01D1", position: on.endAt(last) });
    }
    const before = new Date(begun - 1).toISOString();
    expect(await ask({ ...daves, "tapedeck-at": before })).toMatchObject({ session: undefined });
    const overUrl = await on.stack.httpCall("GET", `/v1/state?source=dave/tools&at=${inZone}`);
    expect(overUrl.headers["tapedeck-session"]).toBe("01D1");
  });

  it("before the first event is before_first, with the earliest", async () => {
    const refusal = { code: 5, status: 404, reason: "before_first", more: { earliest: on.at(1) } };
    expect(await ask({ ...alices, "tapedeck-at": "2020-01-01T00:00:00Z" })).toMatchObject(refusal);
    const bobs = { "tapedeck-source": "bob/shop", "tapedeck-at": on.at(seqOfHalf) };
    expect(await ask(bobs)).toMatchObject({
      reason: "before_first",
      more: { earliest: on.at(alice.events.length + 1) },
    });
  });

  it.each([
    ["beyond the end", () => on.at(999_999), { code: 11, status: 416, reason: "position_future" }],
    ["of another log", () => "1100-zzzzzz", { code: 9, status: 409, reason: "position_foreign" }],
    ["that is none", () => "yesterday", { code: 3, status: 400, reason: "invalid_argument", more: { field: "at" } }],
  ])("%s is refused", async (_, at, refusal) => {
    expect(await ask({ ...alices, "tapedeck-at": at() })).toMatchObject(refusal);
  });

  it.each([["/v1/events"], ["/v2/events"], ["/v1/event_log"], ["/v2/applicationLogs"]])(
    "is refused by %s, which names the right parameter",
    async (path) => {
      const answer = await on.stack.httpCall("GET", `${path}?source=alice/shop&at=${on.at(1)}`);
      expect(answer.status).toBe(400);
      expect(skaffoldRefusal(answer)).toMatchObject({
        message: expect.stringContaining("`after`"),
        info: { metadata: { field: "at" } },
      });
    },
  );
});

describe("reading one's own write", () => {
  const bobs = { "tapedeck-source": "bob/shop" };

  it("the answer reflects at least the requested position", async () => {
    for (let turn = 0; turn < 5; turn++) {
      const artifact = `own-${turn}`;
      running.build(artifact, "started");
      const [seq = 0] = await on.write(bob.events.slice(-1));
      const { artifacts, position } = await askWhenReady({ ...bobs, "tapedeck-min-position": on.at(seq) });
      expect(artifacts).toMatchObject({ [artifact]: "In Progress" });
      expect(seqIn(position?.toString())).toBeGreaterThanOrEqual(seq);
    }
  });

  it.each(["tapedeck-min-position", "tapedeck-at"])(
    "%s is waited for, also for a source that was unknown before",
    async (name) => {
      for (let turn = 0; turn < 3; turn++) {
        const fresh = scenario(sourceOf(`acme/new-${turn}/${name}`));
        const session = fresh.session(`01N${turn}${name}`);
        session.started();
        session.configured();
        session.build("first", "started");
        const seqs = await on.write(fresh.events);
        const request = { "tapedeck-source": `new-${turn}/${name}`, [name]: on.at(seqs.at(-1) ?? 0) };
        expect(await askWhenReady(request)).toMatchObject({ artifacts: { first: "In Progress" } });
      }
    },
  );

  it("beyond the log it is position_future, with the latest", async () => {
    const lastSeq = sequenceOf((await on.stack.log.bounds()).lastOffset);
    const request = { ...bobs, "tapedeck-min-position": on.at(lastSeq + 1) };
    const refusal = {
      code: 11,
      status: 416,
      reason: "position_future",
      more: { latest: on.endAt(lastSeq), field: "min_position" },
    };
    expect(await ask(request)).toMatchObject(refusal);
  });

  it("it is not_ready when query does not get that far", async () => {
    const client = new Client(on.stack.database);
    await client.connect();
    try {
      await client.query("begin; lock table tapedeck.events in share mode");
      running.build("held back", "started");
      const lastSeq = sequenceOf((await on.stack.log.bounds()).lastOffset);
      const writing = on.seed(bob.events.slice(-1));
      await until(async () => sequenceOf((await on.stack.log.bounds()).lastOffset) > lastSeq, {
        message: "the event in the log",
      });
      const request = { ...bobs, "tapedeck-min-position": on.at(lastSeq + 1) };
      expect(await ask(request)).toMatchObject({ code: 14, status: 503, reason: "not_ready" });
      const { headers } = await on.stack.httpCall("GET", "/v1/state", request);
      expect(headers["retry-after"]).toBe("1");
      await client.query("rollback");
      await writing;
      expect(await ask(request)).toMatchObject({ artifacts: { "held back": "In Progress" } });
    } finally {
      await client.end();
    }
  });
});
