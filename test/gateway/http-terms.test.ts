import { scenario } from "@tapedeck/query/testing/scenario";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Item } from "../stack/api-harness.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

// Where reading begins and ends, in every form that HTTP has. The content of streams is tested for every transport in
// transports/, the content of lists and pages in gateway-api.test.ts.

type Message = { readonly type: string; readonly position: string; readonly event?: Item; readonly error?: Item };

type StreamResponse = {
  readonly status: number;
  readonly headers: Headers;
  /** Numbers of the events: 1 is the first. */
  readonly events: number[];
  /** The types of all messages except events; empty for a page. */
  readonly marks: string[];
  readonly error: Item | undefined;
};

type Form = { readonly name: string; readonly path: string; readonly accept: string };

const page: Form = { name: "a page", path: "events", accept: "application/json" };
const historyLines: Form = { name: "history as NDJSON", path: "events", accept: "application/x-ndjson" };
const streamLines: Form = { name: "a stream as NDJSON", path: "stream", accept: "application/x-ndjson" };
const streamEvents: Form = { name: "a stream of server-sent events", path: "stream", accept: "text/event-stream" };
const streams = [streamLines, streamEvents];
const forms = [page, historyLines, ...streams];

const alice = scenario();
const session = alice.session("01A1");
const cleanup = new AsyncDisposableStack();
let on: SeededStack;
/** The times of all events in the log, by number from 1. */
const recordedAt: string[] = [""];

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  session.started();
  session.configured();
  session.loopStarted();
  session.build("web", "started");
  session.build("web", "succeeded");
  // Each event has a separate time, so that times distinguish them.
  for (const event of alice.events) {
    const before = Date.parse(recordedAt.at(-1) ?? "");
    await until(() => !(Date.now() <= before + 1), { message: "a later millisecond" });
    await on.write([event]);
    const { items } = JSON.parse((await on.stack.httpCall("GET", "/api/v1/events?last=1")).body);
    recordedAt.push(items[0].recordedAt);
  }
  await on.stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

/** Reads to the end, or until caught_up on an endless stream. */
async function read({ path, accept }: Form, query: string, more: Record<string, string> = {}): Promise<StreamResponse> {
  const over = new AbortController();
  const url = `http://${on.stack.http}/api/v1/${path}?${filledIn(query)}`;
  const headers = {
    accept,
    ...Object.fromEntries(Object.entries(more).map(([name, value]) => [name, filledIn(value)])),
  };
  const response = await fetch(url, { headers, signal: over.signal });
  const { status } = response;
  if (response.headers.get("content-type")?.startsWith("application/json") === true) {
    const { items = [], error } = (await response.json()) as { items?: Item[]; error?: Item };
    return { status, headers: response.headers, events: items.map(numberOf), marks: [], error };
  }
  const messages: Message[] = [];
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body ?? []) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    const data = accept === "text/event-stream" ? lines.flatMap((line) => line.match(/^data: (.*)/)?.[1] ?? []) : lines;
    messages.push(...data.map((line) => JSON.parse(line) as Message));
    if (messages.some(({ type }) => type === "caught_up")) break;
  }
  over.abort();
  return {
    status,
    headers: response.headers,
    events: messages.flatMap(({ event }) => (event === undefined ? [] : [numberOf(event)])),
    marks: messages.flatMap(({ type }) => (type === "event" ? [] : [type])),
    error: messages.find(({ error }) => error !== undefined)?.error,
  };
}

const numberOf = ({ position }: Item) => seqIn(String(position));

/** P3: the third event's position; E3: the position after its message; T3: the time of its recording. */
function filledIn(text: string): string {
  return text
    .replace(/\bP(\d+)/g, (_, number) => on.at(Number(number)))
    .replace(/\bE(\d+)/g, (_, number) => on.endAt(Number(number)))
    .replace(/\bT(\d+)/g, (_, number) => recordedAt[Number(number)] ?? "");
}

const last = 5;
const all = [1, 2, 3, 4, 5];

describe.each(forms)("the range of $name", (form) => {
  const isStream = form.path === "stream";
  const none: number[] = [];

  it.each<[query: string, events: number[], after: number]>([
    ["", isStream ? none : all, isStream ? last : 0],
    ["after=start", all, 0],
    ["after=now", none, last],
    ["after=P2", [3, 4, 5], 2],
    ["after=P0", all, 0],
    [`after=P${last}`, none, last],
    ["after=T2", [2, 3, 4, 5], 1],
    ["after=2020-01-01T00:00:00Z", all, 0],
    ["after=2099-01-01T00:00:00Z", none, last],
    ["after=2020-01-01T02:00:00+02:00", all, 0],
    ["after=P1&after=P4", [5], 4],
  ])("%s: %j", async (query, events, after) => {
    const got = await read(form, query);
    expect({ events: got.events, position: got.headers.get("tapedeck-position") }).toEqual({
      events,
      // A page returns the position that it reflects, a stream the one after which it starts.
      position: form === page ? on.endAt(last) : /P\d+$/.test(query) ? on.at(after) : on.endAt(after),
    });
    expect(got.marks).toEqual(form === page ? [] : [isStream ? "caught_up" : "complete"]);
  });

  it.each<[query: string, events: number[]]>([
    ["after=start&until=P3", [1, 2, 3]],
    ["after=start&until=now", all],
    ["after=P1&until=P1", none],
    ["after=P3&until=P2", none],
    ["after=start&until=T4", [1, 2, 3, 4]],
    ["after=T2&until=T3", [2, 3]],
    ["after=start&until=2020-01-01T00:00:00Z", none],
    ["after=start&until=P4&kind=build.*", [4]],
    ["after=start&until=now&outcome=succeeded", [5]],
  ])("%s: %j, then complete", async (query, events) => {
    const got = await read(form, query);
    expect(got.events).toEqual(events);
    expect(got.marks).toEqual(form === page ? [] : ["complete"]);
  });

  it.each<[headers: Record<string, string>, query: string, events: number[]]>([
    [{ "tapedeck-after": "P3" }, "", [4, 5]],
    [{ "tapedeck-after": "P3" }, "after=P4", [5]],
    [{ "tapedeck-after": "start", "tapedeck-source": "alice/shop" }, "", all],
    [{ "tapedeck-after": "start", "tapedeck-source": "bob/shop" }, "", none],
    [{ "tapedeck-after": "start", "tapedeck-source": "bob/shop" }, "source=alice/shop", all],
    [{ "tapedeck-after": "start", "tapedeck-session": "01A2" }, "", none],
    [{ "tapedeck-after": "start", "tapedeck-session": "01A2" }, "session=01A1", all],
  ])("headers say it as well: %j with ?%s", async (headers, query, events) => {
    expect((await read(form, query, headers)).events).toEqual(events);
  });

  it.each<[query: string, status: number, error: Item]>([
    ["after=soon", 400, { code: "invalid_argument", field: "after" }],
    ["after=", 400, { code: "invalid_argument", field: "after" }],
    ["until=start", 400, { code: "invalid_argument", field: "until" }],
    ["kind=bild.*", 400, { code: "invalid_argument", field: "filter.kinds" }],
    ["colour=red", 400, { code: "invalid_argument", field: "colour" }],
    ["min_position=P1", 400, { code: "invalid_argument", field: "min_position" }],
    ["after=P99", 416, { code: "position_future", field: "after", latest: "E5" }],
    ["until=P99", 416, { code: "position_future", field: "until", latest: "E5" }],
    ["after=1100-zzzzzz", 409, { code: "position_foreign", field: "after" }],
    ["until=1100-zzzzzz", 409, { code: "position_foreign", field: "until" }],
  ])("%s is refused before anything is given: %i %j", async (query, status, error) => {
    const got = await read(form, query);
    expect(got).toMatchObject({ status, events: [], marks: [] });
    expect(got.error).toEqual({
      ...JSON.parse(filledIn(JSON.stringify(error))),
      message: expect.stringMatching(/\w+ \w+/),
    });
  });
});

describe.each(forms)("a future end of $name", (form) => {
  it("is waited for by streams only", async () => {
    const got = await read(form, "after=start&until=2099-01-01T00:00:00Z");
    expect(got.events).toEqual(all);
    expect(got.marks).toEqual(form === page ? [] : [form === historyLines ? "complete" : "caught_up"]);
  });
});

describe.each(streams)("$name", (form) => {
  it.each<[seen: string, query: string, events: number[]]>([
    ["P4", "after=start", [5]],
    ["P4", "after=now", [5]],
    ["P3", "", [4, 5]],
    ["P2", "after=P4&until=P4", [3, 4]],
    ["", "after=P4", [5]],
  ])("Last-Event-ID %j wins over %j", async (seen, query, events) => {
    expect((await read(form, query, { "last-event-id": seen })).events).toEqual(events);
    expect((await read(form, query, { "last-event-id": seen, "tapedeck-after": "start" })).events).toEqual(events);
  });

  it("a Last-Event-ID of another log is refused, not ignored", async () => {
    const got = await read(form, "after=start", { "last-event-id": "1100-zzzzzz" });
    expect(got).toMatchObject({ status: 409, error: { code: "position_foreign" } });
  });

  it("has its content type, and is neither cached nor held back on its way", async () => {
    const { headers } = await read(form, "until=now");
    const names = ["content-type", "cache-control", "x-accel-buffering"];
    expect(names.map((name) => headers.get(name))).toEqual([form.accept, "no-store", "no"]);
  });
});

describe("parameters that only one form takes", () => {
  it.each([
    [historyLines, "limit=2", "limit"],
    [historyLines, "last=2", "last"],
    [page, "speed=1", "speed"],
    [page, "speed=max", "speed"],
    [page, "state=true", "state"],
    [streamLines, "limit=2", "limit"],
    [streamEvents, "last=2", "last"],
    [page, "at=P2", "at"],
    [streamEvents, "at=P2", "at"],
  ])("$name with %s is refused", async (form, query, field) => {
    expect(await read(form, query)).toMatchObject({ status: 400, error: { code: "invalid_argument", field } });
  });

  it.each(forms)("$name with a moment in a header is refused", async (form) => {
    const got = await read(form, "until=now", { "tapedeck-at": "P2" });
    expect(got).toMatchObject({ status: 400, error: { code: "invalid_argument", field: "at" } });
  });
});

describe("a speed", () => {
  it.each([historyLines, ...streams])("leaves out nothing and adds nothing: $name", async (form) => {
    for (const speed of ["max", "1000", "999.5"]) {
      expect((await read(form, `after=start&until=now&speed=${speed}`)).events).toEqual(all);
    }
    const live = await read(form, "after=start&speed=1000");
    expect([live.events, live.marks]).toEqual([all, [form === historyLines ? "complete" : "caught_up"]]);
  });

  it.each([historyLines, ...streams])("delays what was recorded later: $name", async (form) => {
    // At least 2 ms lie between two events: at this speed more than half an hour.
    const url = `http://${on.stack.http}/api/v1/${form.path}?after=start&until=now&speed=0.000001`;
    const over = new AbortController();
    const response = await fetch(url, { headers: { accept: form.accept }, signal: over.signal });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const got = new TextDecoder().decode((await reader.read()).value);
    const more = reader.read().then(
      () => "more",
      () => "over",
    );
    expect((await read(form, "after=start&until=now")).events).toEqual(all);
    expect(got).toContain(on.at(1));
    expect(got).not.toContain(on.at(2));
    over.abort();
    expect(await more).toBe("over");
  });
});

describe("a moment", () => {
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const filled = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, filledIn(value)]));
    const answer = await on.stack.httpCall("GET", `/api/v1/${filledIn(path)}`, filled);
    return { ...answer, body: JSON.parse(answer.body) };
  };

  it.each([
    ["at=P3", {}, 3],
    ["at=T3", {}, 3, "end"],
    ["", { "tapedeck-at": "P3" }, 3],
    ["at=P4", { "tapedeck-at": "P3" }, 4],
    ["", {}, last, "end"],
  ])("includes everything that was recorded up to it: %s %j", async (query, headers, seq, where = "event") => {
    const position = where === "end" ? on.endAt(seq) : on.at(seq);
    for (const path of ["state", "sources", "sessions", "operations"]) {
      const answer = await get(`${path}?${query}`, headers);
      expect({ path, position: answer.body.position, header: answer.headers["tapedeck-position"] }).toEqual({
        path,
        position,
        header: position,
      });
    }
    const builds = (await get(`operations?kind=build&${query}`, headers)).body.items;
    expect(builds).toHaveLength(seq >= 4 ? 1 : 0);
  });

  it("of an ended session is marked by a header", async () => {
    const { headers } = await get("state");
    expect([headers["tapedeck-session"], headers["tapedeck-session-ended"]]).toEqual(["01A1", undefined]);
  });

  it("that an answer must reflect is waited for: a client can read its own write", async () => {
    for (const path of ["state", "sources", "sessions", "operations", "stats/builds"]) {
      for (const inHeader of [false, true]) {
        const [seq = 0] = await on.write([alice.add({ kind: "source.checkpoint" })]);
        const ask = () =>
          inHeader
            ? get(path, { "tapedeck-min-position": on.endAt(seq) })
            : get(`${path}?min_position=${on.endAt(seq)}`);
        // It may take longer than a request waits: 503 means to try again.
        let answer = await ask();
        while (answer.status === 503) answer = await ask();
        expect({ path, status: answer.status, position: answer.body.position }).toEqual({
          path,
          status: 200,
          position: on.endAt(seq),
        });
      }
      expect((await get(`${path}?min_position=P99`)).body.error).toMatchObject({
        code: "position_future",
        field: "min_position",
      });
      expect((await get(`${path}?min_position=1100-zzzzzz`)).body.error).toMatchObject({ code: "position_foreign" });
      expect((await get(`${path}?min_position=T1`)).body.error).toMatchObject({
        code: "invalid_argument",
        field: "min_position",
      });
    }
  });
});

describe("HEAD", () => {
  it.each([
    "sources",
    "sessions",
    "operations",
    "stats/builds",
    "state",
    "events",
    "stream",
    "stream?after=start&until=now",
  ])("%s has the headers of GET without a body", async (path) => {
    const head = await on.stack.httpCall("HEAD", `/api/v1/${path}`);
    const over = new AbortController();
    const got = await fetch(`http://${on.stack.http}/api/v1/${path}`, {
      headers: { "accept-encoding": "identity" },
      signal: over.signal,
    });
    for (const name of ["content-type", "content-length", "tapedeck-position", "tapedeck-session", "cache-control"]) {
      expect({ name, value: head.headers[name] }).toEqual({ name, value: got.headers.get(name) ?? undefined });
    }
    over.abort();
    expect([head.status, head.body]).toEqual([got.status, ""]);
  });

  it("an error has the status of GET without a body", async () => {
    expect(await on.stack.httpCall("HEAD", "/api/v1/stream?after=soon")).toMatchObject({ status: 400, body: "" });
    expect(await on.stack.httpCall("HEAD", "/api/v1/nothing")).toMatchObject({ status: 404, body: "" });
  });
});

it("without the log every form is refused with the time to retry", async () => {
  await on.stack.parts.nats.stop();
  const [stream, ...refused] = await Promise.all(forms.toReversed().map((form) => read(form, "after=start")));
  // EventSource gets the error as a message.
  expect(stream).toMatchObject({ status: 200, error: { code: "not_ready" } });
  for (const got of refused) {
    expect(got).toMatchObject({ status: 503, error: { code: "not_ready" } });
    expect(got.headers.get("retry-after")).toBe("1");
  }
});
