import { randomBytes } from "node:crypto";
import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { EventSource } from "eventsource";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { skaffoldClient } from "../skaffold/client.ts";
import type { Item } from "../stack/api-harness.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

type Message = {
  readonly type: string;
  readonly id?: string;
  readonly position: string;
  readonly source?: string;
  readonly event?: Item & { readonly kind: string; readonly subject: string; readonly position: string };
  readonly state?: { readonly v1: { readonly buildState: { readonly artifacts: Record<string, string> } | null } };
  readonly error?: { readonly code: string };
};

const alice = scenario();
const session = alice.session("01A1");
const other = scenario(sourceName({ workspace: "globex", developer: "eve", project: "shop", upstream: "skaffold" }));
const hers = other.session("01E1");

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let written = 0;

/** Writes Alice's new events. */
const addEvents = () => {
  const fresh = alice.events.slice(written);
  written = alice.events.length;
  return on.write(fresh);
};

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  session.started();
  session.configured();
  session.loopStarted();
  hers.started();
  hers.configured();
  await addEvents();
  await on.seed(other.events);
});
afterAll(() => cleanup.disposeAsync());

const seqOf = (position: string) => seqIn(position);

async function socket() {
  const ws = new WebSocket(`ws://${on.stack.http}/api/v1/ws`, "tapedeck.v1.json");
  cleanup.defer(() => ws.terminate());
  const got: Message[] = [];
  const sent = new Map<unknown, Readonly<Record<string, unknown>>>();
  const send = (message: Readonly<Record<string, unknown>>) => {
    sent.set(message.id, message);
    ws.send(JSON.stringify(message));
  };
  ws.on("message", (data) => {
    const message = JSON.parse(String(data)) as Message;
    if (message.error?.code === "not_ready") send(sent.get(message.id) ?? {});
    else got.push(message);
  });
  await new Promise((resolve, reject) => ws.once("open", resolve).once("error", reject));
  return { got, send, close: () => ws.terminate() };
}

/** Query may be behind by more than a request for state waits: 503 means to try again. */
const notReady = 503;

/** Reads messages of /api/v1/stream until enough have come; an endless stream stays open. */
function stream(query: string, accept = "application/x-ndjson") {
  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const got: Message[] = [];
  const text: string[] = [];
  const isEventStream = accept === "text/event-stream";
  const ask = async () => {
    const headers = { accept };
    const response = await fetch(`http://${on.stack.http}/api/v1/stream?${query}`, { headers, signal: over.signal });
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of response.body ?? []) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      text.push(...parts);
      const data = isEventStream ? parts.flatMap((part) => (part.startsWith("data: ") ? [part.slice(6)] : [])) : parts;
      got.push(...data.map((part) => JSON.parse(part) as Message));
    }
    // An EventSource learns from an event to try again, because it gives up at any status but 200.
    return response.status === notReady || (got.length === 1 && got[0]?.error?.code === "not_ready");
  };
  const read = async () => {
    while (await ask()) {
      got.length = 0;
      text.length = 0;
    }
    return got;
  };
  const done = read();
  done.catch(() => {});
  return { got, text, done, stop: () => over.abort() };
}

/** The first state of a subscription and the events after it. */
function folded(messages: readonly Message[]): Record<string, string> {
  const [state, ...rest] = messages;
  const artifacts = { ...state?.state?.v1.buildState?.artifacts };
  for (const { event } of rest) {
    if (event?.kind === "build.started") artifacts[event.subject] = "In Progress";
    if (event?.kind === "build.succeeded") artifacts[event.subject] = "Complete";
  }
  return artifacts;
}

const get = async (path: string) => {
  let answer = await on.stack.httpCall("GET", path);
  while (answer.status === notReady) answer = await on.stack.httpCall("GET", path);
  return answer;
};

const stateNow = async (min: string) => {
  const { body } = await get(`/api/v1/state?source=alice/shop&min_position=${min}`);
  return (JSON.parse(body) as Message).state?.v1.buildState?.artifacts;
};

describe("state, then live events", () => {
  it("is complete and without repeats, whenever it begins while others write", async () => {
    const filter = { sources: ["alice/shop"] };
    const ends: (() => Message[])[] = [];
    const reader = await socket();
    for (let round = 0; round < 30; round++) {
      session.build(`a${round}`, "started");
      session.build(`a${round % 7}`, "succeeded");
      const writing = addEvents();
      if (round % 3 === 0) {
        reader.send({ type: "subscribe", id: `ws${round}`, state: true, filter });
        ends.push(() => reader.got.filter(({ id }) => id === `ws${round}`));
      } else if (round % 3 === 1) {
        const sse = stream("state=true&source=alice/shop", "text/event-stream");
        ends.push(() => sse.got);
      } else {
        const lines = stream("state=true&developer=alice&project=shop");
        ends.push(() => lines.got);
      }
      await writing;
    }
    session.build("last", "started");
    const last = on.at((await addEvents()).at(-1) ?? 0);
    const expected = await stateNow(last);
    expect(expected).toMatchObject({ last: "In Progress", a0: "Complete", a29: "In Progress" });
    for (const messages of ends) {
      // A subscription that began after the event has it in its state.
      const isThere = () => messages().some(({ position }) => seqOf(position) >= seqOf(last));
      await until(isThere, { message: "the last event" });
      await until(() => messages().some(({ type }) => type === "caught_up"), { message: "caught_up" });
      const [state, ...rest] = messages();
      expect(state).toMatchObject({ type: "state", source: alice.source, position: expect.any(String) });
      expect(rest.filter(({ type }) => type === "caught_up")).toHaveLength(1);
      const events = rest.filter(({ type }) => type === "event").map(({ position }) => position);
      const all = await get(`/api/v1/events?source=alice/shop&limit=1000&after=${state?.position}`);
      expect(events).toEqual(
        (JSON.parse(all.body) as { items: { position: string }[] }).items.map(({ position }) => position),
      );
      expect(folded(messages())).toEqual(expected);
    }
    reader.close();
  });

  it("begins with the state at the requested position or time", async () => {
    const at = on.at(4); // the first build's start, after three other events
    const lines = stream(`state=true&source=alice/shop&after=${at}`);
    await until(() => lines.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
    expect(lines.got[0]).toMatchObject({
      type: "state",
      position: at,
      state: { v1: { buildState: { artifacts: { a0: "In Progress" } } } },
    });
    expect(seqOf(lines.got[1]?.position ?? "")).toBe(5);
    const early = await on.stack.httpCall("GET", "/api/v1/stream?state=true&after=2020-01-01T00:00:00Z");
    expect(JSON.parse(early.body)).toMatchObject({ error: { code: "before_first" } });
  });

  it("is never older than the moment of the request: it fails with not_ready instead", async () => {
    await on.stack.caughtUp();
    const client = new Client(on.stack.database);
    await client.connect();
    try {
      await client.query("begin; lock table tapedeck.events in share mode");
      session.build("held back", "started");
      await addEvents();
      const { status, body } = await on.stack.httpCall("GET", "/api/v1/stream?state=true");
      expect([status, JSON.parse(body).error.code]).toEqual([503, "not_ready"]);
    } finally {
      await client.end();
    }
    await on.stack.caughtUp();
  });

  it("needs one source: other filters and a start without state are refused", async () => {
    const reader = await socket();
    for (const [id, expected] of Object.entries({
      two: { filter: { sources: ["alice/shop", "bob/shop"] } },
      half: { filter: { developers: ["alice"] } },
      start: { filter: { sources: ["alice/shop"] }, after: "start" },
    })) {
      reader.send({ type: "subscribe", id, state: true, ...expected });
    }
    await until(() => reader.got.length === 3, { message: "three refusals" });
    expect(reader.got).toEqual(
      expect.arrayContaining(
        ["filter.sources", "filter.sources", "after"].map((field) =>
          expect.objectContaining({
            type: "error",
            error: expect.objectContaining({ code: "invalid_argument", field }),
          }),
        ),
      ),
    );
    reader.close();
  });
});

describe("a stream", () => {
  it("shows nothing of another workspace, with any filter", async () => {
    for (const query of [
      "after=start",
      "after=start&developer=eve",
      "after=start&session=01E1",
      `after=start&source=${other.source}`,
    ]) {
      const lines = stream(query);
      await until(() => lines.got.some(({ type }) => type === "caught_up"), { message: "caught_up" });
      hers.build("secret", "started");
      await on.write(other.events.slice(-1));
      session.build("mine", "started");
      await addEvents();
      if (query === "after=start")
        await until(() => lines.got.at(-1)?.event?.subject === "mine", { message: "one's own" });
      expect(JSON.stringify(lines.got)).not.toMatch(/globex|\/eve\/|secret|01E1/);
      lines.stop();
    }
  });

  it("ends with complete at a position or a time, inclusive", async () => {
    const ended = await stream(`after=start&until=${on.at(4)}`).done;
    expect(ended.map(({ type, position }) => [type, seqOf(position)])).toEqual([
      ["event", 1],
      ["event", 2],
      ["event", 3],
      ["event", 4],
      ["complete", 4],
    ]);
    expect(await stream("after=start&until=2020-01-01T00:00:00Z").done).toMatchObject([{ type: "complete" }]);
  });

  it("never moves a client back when its end is before its beginning", async () => {
    const range = `after=${on.at(6)}&until=${on.at(3)}`;
    expect(await stream(range).done).toEqual([{ type: "complete", position: on.at(6) }]);
    const page = await get(`/api/v1/events?${range}`);
    expect(JSON.parse(page.body)).toEqual({ items: [], position: on.at(6) });
  });

  it("works with EventSource, which resumes by itself", async () => {
    const source = new EventSource(`http://${on.stack.http}/api/v1/stream?after=start&kind=build.*`);
    const got: string[] = [];
    const named: string[] = [];
    source.onmessage = ({ lastEventId, data }) => {
      expect((JSON.parse(data) as Message).position).toBe(lastEventId);
      got.push(lastEventId);
    };
    source.addEventListener("caught_up", ({ lastEventId }) => named.push(lastEventId));
    await until(() => named.length === 1, { message: "caught_up" });
    session.build("for EventSource", "started");
    const [seq = 0] = await addEvents();
    await until(() => got.at(-1) === on.at(seq), { message: "the live event" });
    source.close();
    const { body } = await get("/api/v1/events?kind=build.*&limit=1000");
    expect(got).toEqual((JSON.parse(body) as { items: { position: string }[] }).items.map(({ position }) => position));
  });
});

describe("an event of 6 MiB", () => {
  const text = randomBytes(3 << 20).toString("hex");
  let position: string;
  let frame: Buffer;
  beforeAll(async () => {
    frame = Buffer.from(LogEntry.encode(LogEntry.fromPartial({ entry: text })).finish());
    const original = { type: "proto.LogEntry", bytes: frame, size: BigInt(frame.length) };
    alice.add({ kind: "log.written", session: "01A1", channel: "v1", original });
    position = on.at((await addEvents()).at(-1) ?? 0);
    await on.stack.caughtUp();
  });

  it("comes whole over gRPC and HTTP", async () => {
    using client = skaffoldClient(on.stack.grpc);
    const metadata = { "tapedeck-after": on.at(seqOf(position) - 1) };
    const [got] = await client.take("/proto.SkaffoldService/Events", 1, metadata);
    expect(got?.equals(frame)).toBe(true);
    const [line] = await on.stack.httpLines(`/v1/events?after=${on.at(seqOf(position) - 1)}`, 1);
    expect((line as { result: { entry: string } }).result.entry === text).toBe(true);
  });

  it("comes whole in pages, streams and sockets", async () => {
    const after = on.at(seqOf(position) - 1);
    const isWhole = (event: Item | undefined) =>
      (event?.original as { bytes: string } | undefined)?.bytes === frame.toString("base64");
    const page = await get(`/api/v1/events?original=true&after=${after}`);
    expect(isWhole((JSON.parse(page.body) as { items: Item[] }).items[0])).toBe(true);
    for (const accept of ["text/event-stream", "application/x-ndjson"]) {
      const messages = stream(`original=true&after=${after}`, accept);
      await until(() => messages.got.length > 0, { message: accept });
      expect(isWhole(messages.got[0]?.event)).toBe(true);
      messages.stop();
    }
    const reader = await socket();
    reader.send({ type: "subscribe", id: "a", after, original: true });
    await until(() => reader.got.length > 0, { message: "the event" });
    expect(isWhole(reader.got[0]?.event)).toBe(true);
    reader.close();
  });

  it("fills a page, and the next page begins after it", async () => {
    const original = alice.events.at(-1)?.original;
    for (let n = 0; n < 3; n++) {
      alice.add({ kind: "log.written", session: "01A1", channel: "v1", ...(original && { original }) });
      await addEvents();
    }
    const after = on.at(seqOf(position) - 1);
    const page = JSON.parse((await get(`/api/v1/events?original=true&after=${after}`)).body);
    expect(page.items).toHaveLength(3);
    expect(page.nextPage).toBe(page.items[2].position);
    const newest = await get("/api/v1/events?original=true&last=4");
    expect(JSON.parse(newest.body)).toMatchObject({ error: { code: "limit_exceeded", field: "last" } });
    expect(newest.status).toBe(429);
  });
});
