import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { describe, expect, it } from "vitest";
import { ended, type ForeignSession, foreignSession, frameOf, lost } from "../testing/foreign-session.ts";
import { sessionCheck, sessionError } from "./session-check.ts";

const channels = ["v1", "v2", "logs"];
const checkOf = ({ session, source }: ForeignSession, missing?: Readonly<Record<string, number>>) =>
  sessionCheck({ session, source, channels, ...(missing && { missing }) });

function whole(): ForeignSession {
  const foreign = foreignSession();
  foreign.add(...frameOf("v1", "one", "build.started", "build.succeeded"), ...frameOf("logs", "hi", "log.written"));
  foreign.add(...frameOf("v1", "two", "deploy.started"), lost, ended);
  return foreign;
}

/** What is wrong with the first event that is wrong, and its number; or with all of it. */
function errorOf(foreign: ForeignSession, events: readonly Event[], missing?: Readonly<Record<string, number>>) {
  const check = checkOf(foreign, missing);
  for (const [index, event] of events.entries()) {
    const reason = check.next(event);
    if (reason !== undefined) return `${index + 1}: ${reason}`;
  }
  return check.end();
}

describe("sessionCheck", () => {
  it("takes a session as it was recorded", () => {
    const foreign = whole();
    const check = checkOf(foreign, {});
    expect(foreign.events.map((event) => check.next(event)).filter((reason) => reason !== undefined)).toEqual([]);
    expect([check.end(), check.events, check.isOpen, check.holes]).toEqual([undefined, 8, false, {}]);
  });

  it("takes kinds of a later version", () => {
    const foreign = foreignSession();
    foreign.add(...frameOf("v1", "x", "build.dreamt", "rocket.launched"));
    expect(errorOf(foreign, foreign.events)).toBeUndefined();
  });

  it("knows whether it goes on", () => {
    const foreign = foreignSession();
    const check = checkOf(foreign);
    for (const event of foreign.events) check.next(event);
    const open = [check.isOpen];
    foreign.add(ended, { kind: "upstream.restored" }, { kind: "session.lost" });
    for (const event of foreign.events.slice(2)) {
      check.next(event);
      open.push(check.isOpen);
    }
    expect(open).toEqual([true, false, true, false]);
  });

  const second = { seconds: 10n ** 15n, nanos: 0 };
  // The third event is v1's first.
  it.each<[string, Partial<Event>, string]>([
    ["another session's", { session: "01KE3M9Z6Q4W8T2V5X7Y9A1B3C" }, 'it is of session "01KE3M9Z6Q4W8T2V5X7Y9A1B3C"'],
    ["another source's", { source: "acme/a/b/skaffold" }, 'it is of source "acme/a/b/skaffold"'],
    ["of another upstream's channel", { channel: "pods" }, 'there is no channel "pods"'],
    ["of a channel that is a subject", { channel: "v1.>" }, 'there is no channel "v1.>"'],
    ["by another name", { id: "x" }, "its id is another event's"],
    ["of no kind", { kind: "build" }, '"build" is not a kind'],
    ["of a kind that is a subject", { kind: "*.>" }, '"*.>" is not a kind'],
    [
      "an erasure",
      { kind: "session.erased", subject: "01KE3M9Z6Q4W8T2V5X7Y9A1B3C" },
      "a session has no session.erased",
    ],
    ["about the source", { kind: "source.added" }, "a session has no source.added"],
    ["of Tapedeck's on a channel of the upstream", { kind: "session.ended" }, "no upstream emits session.ended"],
    ["in the wrong frame", { frame_ordinal: 2n }, "ordinal 1, frame 2 can't be"],
    ["another part", { part: 1 }, "part 1 of frame 1 can't come after part 0 of frame 0"],
    ["at no time", { occurred_at: second }, "a time must be in the years 1 to 9999"],
    ["too often masked", { redacted: 2 ** 31 }, "redacted 2147483648 is too large"],
    [
      "in too many loops",
      { operation: { kind: "build", subject: "", runner: 1, loop: 2 ** 32 - 1 } },
      "loop 4294967295 is too large",
    ],
    [
      "of an odd operation",
      { operation: { kind: "a\0", subject: "", runner: 1, loop: 1 } },
      '"a\\u0000" is not a kind of operation',
    ],
    [
      "of an odd message",
      { original: { type: "a\0", bytes: Buffer.alloc(0), size: 0n, sha256: Buffer.alloc(0), head: Buffer.alloc(0) } },
      '"a\\u0000" is not the name of a message',
    ],
  ])("an event that is %s", (_, wrong, reason) => {
    const foreign = whole();
    const events = foreign.events.with(2, { ...(foreign.events[2] as Event), ...wrong });
    expect(errorOf(foreign, events)).toContain(`3: ${reason}`);
  });

  it.each<[string, (events: readonly Event[]) => readonly Event[], string]>([
    ["no beginning", (events) => events.slice(1), "1: the session's beginning, session.started, is missing"],
    [
      "two beginnings",
      ([first, ...rest]) => [first as Event, first as Event, ...rest],
      "2: the session has begun before",
    ],
    ["nothing", () => [], "the session has no events"],
    ["a hole", (events) => events.toSpliced(2, 2), "4: v1 1 is missing before it"],
    ["a hole in a frame", (events) => events.toSpliced(3, 1), "5: v1 2 is missing before it"],
    ["one twice", (events) => events.toSpliced(4, 0, events[4] as Event), "6: logs 1 can't come after logs 1"],
    [
      "Tapedeck's own out of order",
      (events) => events.toSpliced(6, 2, events[7] as Event, events[6] as Event),
      "8: tapedeck 43 can't come after tapedeck 44",
    ],
  ])("a session with %s", (_, change, reason) => {
    const foreign = whole();
    expect(errorOf(foreign, change(foreign.events), {})).toBe(reason);
  });

  it("lets be missing what is said to be, no more and no less", () => {
    const foreign = foreignSession();
    for (const text of ["a", "b", "c", "d"]) foreign.add(...frameOf("logs", text, "log.written"));
    const events = foreign.events.toSpliced(3, 2);
    expect(errorOf(foreign, events, { logs: 2 })).toBeUndefined();
    expect(errorOf(foreign, events, { logs: 1 })).toBe("4: logs 2 is missing before it");
    expect(errorOf(foreign, events, { logs: 3 })).toBe('3 events of "logs" are declared missing, and 2 are');
    const found = checkOf(foreign);
    for (const event of events) found.next(event);
    expect([found.end(), found.holes]).toEqual([undefined, { logs: 2 }]);
  });
});

it("a session's id is a ULID, and not of the future", () => {
  const now = Date.UTC(2026, 10, 20);
  expect(sessionError("01KE3M9Z6Q4W8T2V5X7Y9A1B3C", now)).toBeUndefined();
  expect(sessionError("01KE3M9Z6Q4W8T2V5X7Y9A1B3C", Date.UTC(2020, 1, 1))).toContain("begins in the future");
  expect(sessionError("7ZZZZZZZZZZZZZZZZZZZZZZZZZ", now)).toContain("begins in the future");
  for (const odd of ["", "x", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01ke3m9z6q4w8t2v5x7y9a1b3c", "import/../x"]) {
    expect(sessionError(odd, now)).toContain("is not the id of a session");
  }
});
