import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { seqIn } from "@tapedeck/shared/testing/positions";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { transports } from "./all-transports.ts";
import { idsOf, isCaughtUp, readUntil, typesOf } from "./reading.ts";
import type { Endpoint, Message, StreamFilter } from "./transport.ts";

// These sentences about subscriptions hold for every transport.

const storyOf = (workspace: string, developer: string, project: string) =>
  scenario(sourceName({ workspace, developer, project, upstream: "skaffold" }));

const alice = storyOf("acme", "alice", "shop");
const bob = storyOf("acme", "bob", "cart");
const eve = storyOf("globex", "eve", "shop");
const sessions = { alice: alice.session("01A1"), bob: bob.session("01B1"), eve: eve.session("01E1") };

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let endpoint: Endpoint;
/** All of workspace acme, in the order of the log. */
const recorded: { readonly seq: number; readonly event: Event }[] = [];
const writtenCounts = new Map([alice, bob, eve].map((one) => [one, 0]));

/** Writes the scenarios' new events, one scenario after the other. */
async function addEvents(): Promise<void> {
  for (const one of [alice, bob, eve]) {
    const fresh = one.events.slice(writtenCounts.get(one));
    writtenCounts.set(one, one.events.length);
    const seqs = await on.write(fresh);
    if (one !== eve) recorded.push(...fresh.map((event, index) => ({ event, seq: seqs[index] ?? 0 })));
  }
  await on.stack.caughtUp();
}

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  endpoint = { grpc: on.stack.grpc, http: on.stack.http };
  for (const session of Object.values(sessions)) {
    session.started();
    session.configured();
    session.loopStarted();
    session.build("web", "started");
    session.build("web", "failed");
    session.build("api", "started");
  }
  await addEvents();
  // More than a subscription skips without a message.
  for (let line = 0; line < 2_500; line++) sessions.bob.text(`line ${line}`);
  await addEvents();
  sessions.alice.build("api", "succeeded");
  await addEvents();
});
afterAll(() => cleanup.disposeAsync());

/** A WebSocket stays open after it. */
const isComplete = ({ type }: Message) => type === "complete";
const quiet: StreamFilter = { kinds: ["session.*", "loop.*", "build.*", "deploy.*", "source.*"] };
const ids = (selected: (event: Event) => boolean) =>
  recorded.flatMap(({ event }) => (selected(event) ? [event.id] : []));
const isQuiet = ({ kind }: Event) => kind !== "log.written";
const seqOf = ({ position }: Message) => seqIn(position);

describe.each(transports)("a subscription over $name", (transport) => {
  const read = (request: Parameters<typeof readUntil>[2], isLast = isCaughtUp as Parameters<typeof readUntil>[3]) =>
    readUntil(transport, endpoint, request, isLast);

  it("gives history, says once that it has caught up, then gives live events: in order, once each", async () => {
    const selected = { ...quiet, developers: ["alice"] };
    const expected = ids((event) => isQuiet(event) && event.source === alice.source);
    let adding: Promise<void> | undefined;
    const messages = await read({ after: "start", filter: selected }, (message, soFar) => {
      if (message.type === "caught_up" && adding === undefined) {
        sessions.alice.build("live", "started");
        sessions.alice.build("live", "canceled");
        adding = addEvents();
      }
      return idsOf(soFar).length === expected.length + 2;
    });
    // A reader may get the events before their write resolves.
    await adding;
    const now = ids((event) => isQuiet(event) && event.source === alice.source);
    expect(idsOf(messages)).toEqual(now.slice(0, expected.length + 2));
    expect(typesOf(messages).filter((type) => type === "caught_up")).toEqual(["caught_up"]);
    expect(messages.findIndex(isCaughtUp)).toBeGreaterThanOrEqual(expected.length);
    const seqs = messages.map(seqOf);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  });

  it("resumes after any position: of an event, of an event outside its filter, of a mark", async () => {
    const expected = recorded.filter(({ event }) => isQuiet(event));
    const places = [0, 1, expected[2]?.seq ?? 0, 1_500, expected.at(-1)?.seq ?? 0];
    for (const seq of places) {
      const messages = await read({ after: on.at(seq), filter: quiet });
      const rest = expected.filter((one) => one.seq > seq).map(({ event }) => event.id);
      expect({ seq, ids: idsOf(messages) }).toEqual({ seq, ids: rest });
    }
  });

  it("begins at the end of the log by default", async () => {
    const [first] = await read({ filter: quiet });
    expect(first?.type).toBe("caught_up");
    expect(seqOf(first as Message)).toBeGreaterThanOrEqual(recorded.at(-1)?.seq ?? 0);
  });

  it("begins at a time with the first event recorded then or later", async () => {
    const [all] = [await read({ after: "2020-01-01T00:00:00Z", filter: { ...quiet, developers: ["bob"] } })];
    expect(idsOf(all)).toEqual(ids((event) => isQuiet(event) && event.source === bob.source));
    expect(idsOf(await read({ after: new Date(Date.now() + 60_000).toISOString(), filter: quiet }))).toEqual([]);
  });

  it.each<[StreamFilter, (event: Event) => boolean]>([
    [{ kinds: ["build.*"] }, ({ kind }) => kind.startsWith("build.")],
    [{ kinds: ["*.failed", "loop.started"] }, ({ kind }) => kind.endsWith(".failed") || kind === "loop.started"],
    [
      { developers: ["Bob"], kinds: ["build.started"] },
      ({ source, kind }) => source === bob.source && kind === "build.started",
    ],
    [{ projects: ["shop"], subjects: ["web"] }, ({ source, subject }) => source === alice.source && subject === "web"],
    [
      { sources: ["alice/shop"], outcomes: ["failed"] },
      ({ source, outcome }) => source === alice.source && outcome === 2,
    ],
    [
      { sources: ["acme/bob/cart/skaffold"], subjects: ["api"] },
      ({ source, subject }) => source === bob.source && subject === "api",
    ],
    [
      { sessions: ["01B1"], kinds: ["session.*"] },
      ({ session, kind }) => session === "01B1" && kind.startsWith("session."),
    ],
    [{ upstreams: ["rkt"] }, () => false],
    [{ developers: ["eve"] }, () => false],
    [{ sources: ["globex/eve/shop/skaffold"] }, () => false],
    [{ sessions: ["01E1"] }, () => false],
  ])("gives what %j wants, and nothing else", async (filter, wants) => {
    expect(idsOf(await read({ after: "start", filter }))).toEqual(ids(wants));
  });

  it("reports how far the log has advanced while no event matches", async () => {
    const filter = { subjects: ["api"] };
    const messages = await read({ after: "start", filter });
    expect(idsOf(messages)).toEqual(ids(({ subject }) => subject === "api"));
    expect(typesOf(messages)).toContain("bookmark");
    // A bookmark is a position to resume from like any other.
    const bookmark = messages.find(({ type }) => type === "bookmark");
    const rest = await read({ after: bookmark?.position ?? "", filter });
    const before = messages.slice(0, messages.indexOf(bookmark as Message));
    expect([...idsOf(before), ...idsOf(rest)]).toEqual(idsOf(messages));
  });

  it("begins with the state on request, and continues after it", async () => {
    const messages = await read({ state: true, filter: { sources: ["alice/shop"] } });
    expect(typesOf(messages)).toEqual(["state", "caught_up"]);
    expect(seqOf(messages[0] as Message)).toBeGreaterThanOrEqual(recorded.at(-1)?.seq ?? 0);
    const third = recorded.filter(({ event }) => event.source === alice.source)[2]?.seq ?? 0;
    const then = await read({ state: true, after: on.at(third), filter: { sources: ["alice/shop"] } });
    expect(typesOf(then)[0]).toBe("state");
    expect(seqOf(then[0] as Message)).toBe(third);
    expect(idsOf(then)).toEqual(
      recorded.filter(({ event, seq }) => event.source === alice.source && seq > third).map(({ event }) => event.id),
    );
  });

  it("ends at its requested end with `complete`", async () => {
    const [third, fifth] = [recorded[2]?.seq ?? 0, recorded[4]?.seq ?? 0];
    const selected = recorded.filter(({ seq, event }) => seq > third && seq <= fifth && isQuiet(event));
    const messages = await read({ after: on.at(third), until: on.at(fifth), filter: quiet }, isComplete);
    expect(idsOf(messages)).toEqual(selected.map(({ event }) => event.id));
    expect(messages.at(-1)).toMatchObject({ type: "complete", position: on.at(fifth) });
    const all = await read({ after: "start", until: "now", filter: quiet }, isComplete);
    expect(new Set(typesOf(all))).toEqual(new Set(["event", "bookmark", "complete"]));
  });

  it("waits for an end in the future, stays live until then, and ends there even without another event", async () => {
    const end = new Date(Date.now() + 800);
    const time = end.toISOString();
    const filter = { ...quiet, developers: ["alice"] };
    const after = on.at(recorded.at(-1)?.seq ?? 0);
    const ended = [
      read({ after, until: time, filter }, isComplete),
      read({ until: time, filter: { developers: ["nobody"] } }, isComplete),
    ] as const;
    // Some come before the end, and some after it.
    while (Date.now() <= end.getTime() + 50) {
      sessions.alice.build("soon", "started");
      await addEvents();
    }
    const [live, silent] = await Promise.all(ended);
    expect([live, silent].map((messages) => messages.at(-1)?.type)).toEqual(["complete", "complete"]);
    expect(idsOf(silent)).toEqual([]);
    // The recorded events show where the end was.
    const again = await read({ after, until: time, filter }, isComplete);
    expect(idsOf(live)).toEqual(idsOf(again));
    expect(live.at(-1)).toEqual(again.at(-1));
    const seqs = live.map(seqOf);
    expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
  });

  it("plays history at a speed", async () => {
    const filter = { developers: ["bob", "alice"], subjects: ["api"] };
    const fast = await read({ after: "start", speed: 1_000, filter });
    expect(idsOf(fast)).toEqual(ids(({ subject }) => subject === "api"));
    // Slower than any test: only events recorded at the same time as the first one come.
    const slow: Message[] = [];
    const leaving = new AbortController();
    const reading = (async () => {
      const request = { after: "start", speed: 0.000001, filter };
      for await (const message of transport.read(endpoint, request, leaving.signal)) slow.push(message);
    })().catch(() => {});
    await until(() => slow.length > 0, { message: "the first" });
    await read({ after: "start", filter });
    leaving.abort();
    await reading;
    expect(idsOf(slow)[0]).toBe(idsOf(fast)[0]);
    expect(idsOf(slow)).not.toContain(idsOf(fast).at(-1));
    expect(slow.some(isCaughtUp)).toBe(false);
  });

  it.each(transports)("continues where $name has stopped", async (other) => {
    const selected = recorded.filter(({ event }) => isQuiet(event)).map(({ event }) => event.id);
    const first = await readUntil(
      other,
      endpoint,
      { after: "start", filter: quiet },
      (_, soFar) => idsOf(soFar).length === 5,
    );
    const rest = await read({ after: first.at(-1)?.position ?? "", filter: quiet });
    expect([...idsOf(first), ...idsOf(rest)]).toEqual(selected);
  });
});
