import { expect, it } from "vitest";
import { matchSession, type ReceivedChannel } from "./session-match.ts";

const said = (shas: string, complete = true): ReceivedChannel => ({
  shas: new Set(shas),
  fingerprint: shas[0]?.toLowerCase() === shas[0] ? shas[0] : undefined, // capitals have no time
  complete,
});
const known = (fingerprints: Record<string, string>, open = true) => ({
  open,
  fingerprints: new Map(Object.entries(fingerprints)),
});
const received = (channels: Record<string, ReceivedChannel>) => new Map(Object.entries(channels));

it.each([
  ["the first contact is a new session", undefined, { v1: said("abc") }, "new"],
  ["a repeat that begins alike is the same session", known({ v1: "a" }), { v1: said("abc") }, "same"],
  ["the known message may stand anywhere in the repeat", known({ v1: "b" }), { v1: said("abc") }, "same"],
  ["another beginning is another process", known({ v1: "a" }), { v1: said("xyz") }, "new"],
  ["one channel that matches is enough", known({ v1: "a", v2: "k" }), { v1: said("xyz"), v2: said("k") }, "same"],
  [
    "a channel that says only part of it proves nothing",
    known({ v1: "a", logs: "l" }),
    { logs: said("m", false) },
    "wait",
  ],
  ["a channel that the session never heard proves nothing", known({ v1: "a" }), { v2: said("k") }, "wait"],
  ["neither side has a fingerprint", known({}), { v1: said("G") }, "same"],
  ["only the connection has one", known({}), { v1: said("a") }, "new"],
  ["only the session has one", known({ v1: "a" }), { v1: said("G") }, "wait"],
  ["a session that was ended wrongly goes on", known({ v1: "a" }, false), { v1: said("ab") }, "same"],
  ["an ended session without a fingerprint is over", known({}, false), { v1: said("G") }, "new"],
] as const)("%s", (_title, newest, channels, verdict) => {
  expect(matchSession(newest, received(channels), false)).toBe(verdict);
  expect(matchSession(newest, received(channels), true)).toBe(verdict === "wait" ? "new" : verdict);
});
