import { encodeEvent } from "@tapedeck/shared/events/codec";
import { encodeBatch } from "@tapedeck/shared/log/batch";
import type { Log } from "@tapedeck/shared/log/jetstream";
import type { StoredMessage } from "@tapedeck/shared/log/log";
import { messageSubject } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { testEvent } from "@tapedeck/shared/testing/log-messages";
import { describe, expect, it } from "vitest";
import { CopyComparison } from "./compare.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const now = 1_800_000_000_000;

/** A message of the old log, each with an event of its own. */
function message(seq: number, more: Partial<StoredMessage> = {}, event: Parameters<typeof testEvent>[2] = {}) {
  const { channel = "v1", kind = "build.started" } = event;
  return {
    seq,
    recordedAtMs: now - 1_000_000 + seq,
    subject: messageSubject(source, channel, kind, "facts"),
    writer: "w1",
    cursor: { session: "s", ordinals: { v1: seq }, frames: { v1: seq } },
    expires: false,
    expiresAtMs: undefined,
    moved: undefined,
    data: encodeBatch([encodeEvent(testEvent(source, seq, event))]),
    ...more,
  } satisfies StoredMessage;
}

const marks = { channel: "tapedeck", kind: "session.erased" } as const;
const mark = (seq: number, subject: string) =>
  message(seq, { subject: messageSubject(source, "tapedeck", "session.erased", "facts") }, { ...marks, subject });

/** The copy of a message, as it is read from the new log. */
const copyOf = (one: StoredMessage, more: Partial<StoredMessage> = {}): StoredMessage => ({
  ...one,
  seq: one.seq + 7,
  moved: { epoch: "old1", sequence: one.seq, recordedAtMs: one.recordedAtMs },
  ...more,
});

async function* each(messages: readonly StoredMessage[]): AsyncGenerator<StoredMessage, void> {
  yield* messages;
}

async function compared(old: readonly StoredMessage[], copies: readonly StoredMessage[]): Promise<void> {
  const comparison = new CopyComparison("acme", () => now);
  await comparison.compare(each(old), each(copies));
  comparison.assertExplained();
}

const all = [message(1), message(4), message(5)];
const [one, four, five] = all as [StoredMessage, StoredMessage, StoredMessage];

it("accepts a copy of everything, and nothing of nothing", async () => {
  await compared(
    all,
    all.map((each) => copyOf(each)),
  );
  await compared([], []);
});

it.each([
  ["the first", [four, five], 1],
  ["one between", [one, five], 4],
  ["the last", [one, four], 5],
  ["all", [], 1],
])("misses %s", async (_, there, seq) => {
  const copies = there.map((each) => copyOf(each));
  await expect(compared(all, copies)).rejects.toThrow(`message ${seq} of "acme" is missing in the new shard`);
});

it.each<[string, Partial<StoredMessage>]>([
  ["subject", { subject: messageSubject(source, "v1", "build.written", "text") }],
  ["writer", { writer: "w2" }],
  ["cursor", { cursor: { session: "s", ordinals: { v1: 5 }, frames: { v1: 4 } } }],
  ["time", { recordedAtMs: four.recordedAtMs + 1 }],
  ["bytes", { data: message(4, {}, { summary: "other" }).data }],
])("notices another %s", async (_, other) => {
  const copies = [copyOf(one), copyOf(four, other), copyOf(five)];
  await expect(compared(all, copies)).rejects.toThrow('message 4 of "acme" is different in the new shard');
});

describe("messages that only the new log has", () => {
  const session = (seq: number, name: string, more: Partial<StoredMessage> = {}) =>
    message(seq, more, { session: name });

  it.each([
    ["before the rest", 0],
    ["between", 3],
    ["behind the rest", 9],
  ])("is a loss of the old one: %s", async (_, seq) => {
    const lost = session(seq, "other");
    const copies = [...all, lost].toSorted((a, b) => a.seq - b.seq).map((each) => copyOf(each));
    await expect(compared(all, copies)).rejects.toThrow("has lost messages of session other that were copied");
  });

  it("is a loss when it is about the source as a whole", async () => {
    const copies = [copyOf(session(3, "")), ...all.slice(1).map((each) => copyOf(each))];
    await expect(compared(all.slice(1), copies)).rejects.toThrow("has lost messages of a source");
  });

  it("was erased when the session's mark came along", async () => {
    const erased = [...all, mark(8, "other")];
    const copies = [copyOf(one), copyOf(session(3, "other")), ...erased.slice(1).map((each) => copyOf(each))];
    await compared(erased, copies);
  });

  it("was not erased by the mark of another session", async () => {
    const erased = [...all, mark(8, "another")];
    const copies = [copyOf(one), copyOf(session(3, "other")), ...erased.slice(1).map((each) => copyOf(each))];
    await expect(compared(erased, copies)).rejects.toThrow("has lost messages of session other");
  });

  it("is text that has expired in the old one", async () => {
    const text = copyOf(session(3, "other", { expires: true, expiresAtMs: now - 1 }));
    await compared(all, [copyOf(one), text, copyOf(four), copyOf(five)]);
  });

  it("is explained over several parts", async () => {
    const comparison = new CopyComparison("acme", () => now);
    await comparison.compare(each([one]), each([copyOf(one), copyOf(session(3, "other"))]));
    expect(() => comparison.assertExplained()).toThrow("has lost messages of session other");
    await comparison.compare(each([mark(8, "other")]), each([copyOf(mark(8, "other"))]));
    comparison.assertExplained();
  });
});

it("reads each message once, however many parts", async () => {
  const read: string[] = [];
  const log = (name: string, messages: readonly StoredMessage[]): Log["stored"] =>
    async function* ({ first, last }) {
      for (const message of messages) {
        if (message.seq < first || message.seq > last) continue;
        read.push(`${name} ${message.seq}`);
        yield message;
      }
    };
  const copies = all.map((each) => copyOf(each));
  const logs = { old: log("old", all), copies: log("new", copies) };
  const comparison = new CopyComparison("acme", () => now);
  await comparison.compareUpTo({ old: 4, copies: 11 }, logs, new AbortController().signal);
  expect(read.splice(0).toSorted()).toEqual(["new 11", "new 8", "old 1", "old 4"]);
  await comparison.compareUpTo({ old: 5, copies: 12 }, logs, new AbortController().signal);
  expect(read.splice(0).toSorted()).toEqual(["new 12", "old 5"]);
  const lacking = { ...logs, copies: log("new", [copyOf(one)]) };
  const again = new CopyComparison("acme", () => now);
  await again.compareUpTo({ old: 1, copies: 8 }, lacking, new AbortController().signal);
  await expect(again.compareUpTo({ old: 5, copies: 8 }, lacking, new AbortController().signal)).rejects.toThrow(
    "message 4",
  );
});

it.each([
  ["has expired, but was not removed yet", -1, true],
  ["is about to expire", 59_000, true],
  ["has a while left", 61_000, false],
  ["has a year left", 31_536_000_000, false],
])("text that is missing and %s", async (_, leftMs, isAccepted) => {
  const text = message(3, { expires: true, expiresAtMs: now + leftMs });
  const comparing = compared(
    [one, text, four],
    [one, four].map((each) => copyOf(each)),
  );
  if (isAccepted) await comparing;
  else await expect(comparing).rejects.toThrow('message 3 of "acme" is missing');
});
