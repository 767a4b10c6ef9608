import { Event, Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { expect, it } from "vitest";
import { Delivery } from "../../delivery/delivery.ts";
import type { TargetAnswer } from "../../target/http-target.ts";
import { firstOpening, noReader } from "../../testing/no-reader.ts";
import type { FormattedSink } from "../format.ts";
import { slack } from "./chat.ts";

const epoch = "gcj869";
const never = new AbortController().signal;
const sink: FormattedSink = {
  workspace: "default",
  name: "team",
  mode: "batched",
  filter: {},
  live: false,
  secret: undefined,
  epoch,
  page: "http://tapedeck.example",
};

type Played = readonly [seconds: number, developer: string, verb: "failed" | "succeeded", more?: Partial<Event>];

/** Events in messages of their own, recorded at seconds. */
function recordedOf(events: readonly Played[]): readonly RecordedEvent[] {
  return events.map(([seconds, developer, verb, more], index) => ({
    offset: offsetOf(index + 1),
    recordedAt: new Date(seconds * 1_000),
    subject: "",
    event: Event.fromPartial({
      id: `${index}`,
      source: `default/${developer}/shop/skaffold`,
      session: `session-of-${developer}`,
      kind: `loop.${verb}`,
      outcome: verb === "failed" ? Outcome.OUTCOME_FAILED : Outcome.OUTCOME_SUCCEEDED,
      operation: { kind: "loop", subject: "", runner: 1, loop: index + 1 },
      ...more,
    }),
  }));
}

const answered = (status: number): TargetAnswer => ({
  type: "answer",
  status,
  retryAfter: undefined,
  contentType: undefined,
  body: Buffer.alloc(0),
});

/** "alice failed", "bob good": what a message of Slack is about. */
function aboutOf(body: Uint8Array | string): string {
  const { text } = JSON.parse(Buffer.from(body).toString()) as { readonly text: string };
  return `${/\*(\w+)\//.exec(text)?.[1]} ${text.includes("good again") ? "good" : "failed"}`;
}

/** A chat that answers so, with a log in which these sessions are erased. */
function harness(events: readonly Played[], answer: (about: string) => number = () => 200, erased: string[] = []) {
  const recorded = recordedOf(events);
  const sent: string[] = [];
  const accepted: string[] = [];
  const parked: number[] = [];
  const delivered: Offset[] = [];
  const over = new AbortController();
  const reader = {
    ...noReader,
    async *read(offsets: readonly Offset[]) {
      yield* recorded.filter(({ offset, event }) => offsets.includes(offset) && !erased.includes(event.session));
    },
  };
  const delivery = new Delivery({
    format: slack,
    reader,
    opening: firstOpening,
    sink,
    headers: {},
    target: {
      async post({ body }) {
        const about = aboutOf(body);
        sent.push(about);
        if (sent.length > 200) over.abort();
        const status = answer(about);
        if (status === 200) accepted.push(about);
        return answered(status);
      },
    },
    times: { retryMs: 0, maxRetryMs: 0 },
    listener: {
      delivered: (offset) => void delivered.push(offset),
      attempted: () => {},
      failing: () => {},
      park: async (one) => void parked.push(sequenceOf(one.recorded.offset)),
    },
  });
  const held = recorded.map((one) => ({
    offset: one.offset,
    subject: "",
    bytes: Buffer.alloc(1),
    isShared: false,
    decode: () => one,
  }));
  return {
    delivery,
    accepted,
    parked,
    over,
    run: (first = 1, last = held.length) => delivery.deliver(held.slice(first - 1, last), over.signal),
  };
}

const developers = ["alice", "bob", "chris", "dora"];
/** Each fails, and is good again before a minute is over. */
const shortFailures: readonly Played[] = [
  ...developers.map((name): Played => [0, name, "failed"]),
  ...developers.map((name): Played => [10, name, "succeeded"]),
];

it("messages that wait for the end of their minute are sent once each to a chat that takes few at a time", async () => {
  for (const isDue of [true, false]) {
    let requests = 0;
    const on = harness([...shortFailures, [100, "erin", "failed"]], () => (requests++ % 3 === 2 ? 429 : 200));
    await on.run(1, 8);
    if (isDue)
      while (!(await on.delivery.deliverDue(100_000, on.over.signal))) expect(on.over.signal.aborted).toBe(false);
    await on.run(9);
    const goods = developers.map((name) => `${name} good`);
    expect(on.accepted).toEqual([...developers.map((name) => `${name} failed`), ...goods, "erin failed"]);
  }
});

it("a message that waited and is refused for what it says parks its own event, and no other is lost", async () => {
  for (const isDue of [true, false]) {
    const on = harness([...shortFailures, [100, "erin", "failed"]], (about) => (about === "bob good" ? 400 : 200));
    await on.run(1, 8);
    if (isDue) expect(await on.delivery.deliverDue(100_000, on.over.signal)).toBe(true);
    await on.run(9);
    expect(on.parked).toEqual([6]);
    expect(on.accepted.slice(4)).toEqual(["alice good", "chris good", "dora good", "erin failed"]);
  }
});

it("a message that waits is not sent when its session is erased meanwhile", async () => {
  const on = harness(shortFailures, () => 200, ["session-of-bob"]);
  await on.run();
  expect(await on.delivery.deliverDue(100_000, on.over.signal)).toBe(true);
  expect(on.accepted.slice(4)).toEqual(["alice good", "chris good", "dora good"]);
});

it("a source whose failure waited and was erased is not called good again later", async () => {
  const events: readonly Played[] = [
    ...shortFailures,
    ...developers.map((name): Played => [70, name, "failed", { session: `erased-${name}` }]),
    [200, "alice", "failed"],
    [400, "alice", "succeeded"],
    [400, "bob", "succeeded"],
  ];
  for (const isDue of [true, false]) {
    const on = harness(
      events,
      () => 200,
      developers.map((name) => `erased-${name}`),
    );
    await on.run(1, 12);
    if (isDue) expect(await on.delivery.deliverDue(190_000, on.over.signal)).toBe(true);
    await on.run(13);
    const [failed, good] = ["failed", "good"].map((state) => developers.map((name) => `${name} ${state}`));
    expect(on.accepted).toEqual([...(failed ?? []), ...(good ?? []), "alice failed", "alice good"]);
  }
});

it("a message that waited is sent soon after the clock of the log is set back", async () => {
  const on = harness([...shortFailures.slice(0, 5), [-3_600, "erin", "failed"]]);
  await on.run();
  expect(on.accepted.slice(4)).toEqual(["alice good", "erin failed"]);
});

it("a failure that a client has put into the upstream makes no message", async () => {
  const on = harness([
    [0, "alice", "failed", { injected: true }],
    [1, "bob", "failed"],
  ]);
  await on.run();
  expect(on.accepted).toEqual(["bob failed"]);
});

const eventsOf = (events: readonly Played[]) =>
  recordedOf(events).map((recorded) => ({ recorded, position: formatPosition({ epoch, offset: recorded.offset }) }));

/** A pass over a log with these events. */
const passOver = (events: ReturnType<typeof eventsOf>, memory?: string) => {
  const read = async function* (offsets: readonly Offset[]) {
    for (const { recorded } of events) if (offsets.includes(recorded.offset)) yield recorded;
  };
  return slack.open(sink, { ...noReader, read }, { ...firstOpening, memory });
};

it("events that are requested again, or in parts, give the same messages and the same memory at each of them", async () => {
  const verbs = ["failed", "succeeded", "succeeded", "failed", "failed"] as const;
  const events = eventsOf(
    Array.from({ length: 60 }, (_, index) => [
      index * 5,
      `dev${(index * 7) % 5}`,
      verbs[index % verbs.length] ?? "failed",
    ]),
  );
  const idsOf = async (pass: ReturnType<typeof passOver>, from: number, to: number) =>
    (await pass.requests(events.slice(from, to), never)).map(({ id }) => id);
  const whole = passOver(events);
  const expected = await idsOf(whole, 0, 60);
  const again = passOver(events);
  await idsOf(again, 0, 60);
  expect(await idsOf(again, 0, 60)).toEqual(expected);
  const parts = passOver(events);
  await idsOf(parts, 0, 30);
  await idsOf(parts, 0, 15);
  const memories = new Map<number, string>();
  const ids: string[] = [];
  for (let from = 0; from < 60; from += 15) {
    ids.push(...(await idsOf(parts, from, from + 15)));
    for (const at of [from, from + 14]) memories.set(at, parts.memory?.(events[at]?.recorded.offset ?? logStart) ?? "");
  }
  expect(ids).toEqual(expected);
  for (const [at, memory] of memories) {
    expect(new Map(JSON.parse(memory))).toEqual(
      new Map(JSON.parse(whole.memory?.(events[at]?.recorded.offset ?? logStart) ?? "")),
    );
    // After a kill, from there on.
    const ofRest = await idsOf(passOver(events, memory), at + 1, 60);
    expect(ofRest).toEqual(expected.slice(expected.length - ofRest.length));
  }
});

it("the sources that changed last are remembered, 2,000 of them", async () => {
  const events = eventsOf(Array.from({ length: 2_500 }, (_, index) => [index, `dev${index}`, "failed"]));
  const pass = passOver(events);
  for (let from = 0; from < events.length; from += 100) await pass.requests(events.slice(from, from + 100), never);
  const remembered = JSON.parse(pass.memory?.(offsetOf(2_500)) ?? "") as readonly (readonly [string, object])[];
  expect(remembered.length).toBe(2_000);
  expect(remembered[0]?.[0]).toContain("dev500/");
});
