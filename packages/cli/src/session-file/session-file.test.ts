import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { ended, type ForeignSession, foreignSession, frameOf } from "@tapedeck/shared/testing/foreign-session";
import { ulid } from "ulid";
import { afterAll, describe, expect, it } from "vitest";
import { type FileParts, sessionFileLines, textOf } from "../testing/session-file-lines.ts";
import { isSessionFile, SessionFileReader, sessionEvents, verifySessionFile } from "./session-file.ts";
import { eventLine, readEventLine } from "./session-file-format.ts";

const folder = mkdtempSync(join(tmpdir(), "tapedeck-session-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function put(content: string | Uint8Array): string {
  const file = join(folder, `${++files}`);
  writeFileSync(file, content);
  return file;
}

const source = "globex/carol/site/skaffold";

function sessionOf(ms: number): ForeignSession {
  const foreign = foreignSession({ session: ulid(ms).slice(0, 10).padEnd(26, "A"), source });
  const text = "bytes that are no UTF-8: \0 and \u2028";
  foreign.add(
    ...frameOf("v1", text, "build.started", "build.succeeded"),
    ...frameOf("logs", "hi", "log.written"),
    ended,
  );
  return foreign;
}

const sessions = [sessionOf(1_700_000_000_000), sessionOf(1_700_000_000_001)];

const linesOf = (parts: Partial<FileParts> = {}) => sessionFileLines({ sessions, ...parts });
const encoded = (event: Event) => Buffer.from(Event.encode(event).finish()).toString("base64");

describe("a line of an event", () => {
  const original = { type: "proto.LogEntry", bytes: Buffer.from([255, 0, 10]), size: 3n };
  const [first] = sessions[0]?.events ?? [];
  const event: Event = {
    ...(first ?? Event.create()),
    original: { ...original, sha256: Buffer.alloc(0), head: Buffer.alloc(0) },
    // A field of a later version.
    _unknownFields: { 15994: [Buffer.from([1, 120])] },
  };
  const line = eventLine({ position: "abc-1", recordedAt: new Date(5), event });

  it("reads as the API gives it, and holds the very event", () => {
    expect(JSON.parse(line)).toMatchObject({
      position: "abc-1",
      recordedAt: "1970-01-01T00:00:00.005Z",
      kind: "session.started",
      original: { type: "proto.LogEntry", size: 3, bytes: "/wAK" },
    });
    expect(encoded(readEventLine(line).event)).toBe(encoded(event));
    expect(eventLine(readEventLine(line))).toBe(line);
  });

  it("has the bytes once", () => expect(line.split(original.bytes.toString("base64"))).toHaveLength(2));

  it("knows a frame that was too large for the log", () => {
    const empty = { bytes: Buffer.alloc(0), size: 9n, sha256: Buffer.alloc(32, 1), head: Buffer.from("abc") };
    const large = { ...event, original: { type: "proto.LogEntry", ...empty } };
    const reported = eventLine({ position: "abc-1", recordedAt: new Date(5), event: large });
    expect(encoded(readEventLine(reported).event)).toBe(encoded(large));
  });
});

describe("a session file", () => {
  it.each([
    ["plain", (text: string) => text],
    ["compressed", (text: string) => gzipSync(text)],
  ])("is read as it was written, %s", async (_, packed) => {
    const file = put(packed(textOf(linesOf())));
    expect(await isSessionFile(file)).toBe(true);
    const verified = await verifySessionFile(file);
    expect(verified.sessions.map(({ session, events, line }) => ({ session, events, line }))).toEqual(
      sessions.map(({ session }, index) => ({ session, events: 6, line: 2 + 6 * index })),
    );
    for (const [index, filed] of verified.sessions.entries()) {
      const events = await Array.fromAsync(sessionEvents(file, filed));
      expect(events.map(encoded)).toEqual(sessions[index]?.events.map(encoded));
    }
  });

  it("may miss what it says", async () => {
    const [one = expect.fail()] = sessions;
    const some = { ...one, events: one.events.filter(({ channel }) => channel !== "v1") };
    const first = frameOf("v1", "two", "build.started")[0];
    const later = { ...one.events[2], ...first, ordinal: 3n, frame_ordinal: 2n, id: `${one.session}.v1.3` } as Event;
    some.events.splice(3, 0, later);
    const missing = { [one.session]: { v1: 2 } };
    const file = put(textOf(linesOf({ sessions: [some], end: { missing } })));
    expect((await verifySessionFile(file)).sessions).toMatchObject([{ missing: { v1: 2 } }]);
    const silent = put(textOf(linesOf({ sessions: [some] })));
    await expect(verifySessionFile(silent)).rejects.toThrow(`${silent}:5: events are missing before it`);
  });

  const lines = linesOf();
  const [head = "", first = "", second = ""] = lines;
  const last = lines.length - 1;
  const changed = (line: number, from: string | RegExp, to: string) =>
    textOf(lines.with(line - 1, (lines[line - 1] ?? "").replace(from, to)));

  it.each<[string, string | Uint8Array, number, string]>([
    [
      "cut off after a line",
      textOf(lines.slice(0, 5)),
      5,
      "the file ends here, without its last line: it was truncated",
    ],
    ["cut off in a line", textOf(lines).slice(0, 3_000), 5, "it is not JSON, or is truncated"],
    [
      "cut off while compressed",
      gzipSync(textOf(lines)).subarray(0, 900),
      5,
      "the compressed file is damaged or truncated here",
    ],
    ["empty", "", 0, "the file ends here"],
    [
      "of a newer version",
      changed(1, '"version":1', '"version":2'),
      1,
      "it is from a newer Tapedeck (format version 2",
    ],
    [
      "of another tool",
      changed(1, '"upstream":"skaffold"', '"upstream":"make"'),
      1,
      "it is not the first line of a session file: upstream",
    ],
    [
      "of another upstream's source",
      changed(1, '"upstream":"skaffold"', '"upstream":"rkt"'),
      1,
      `${source} is not a source of rkt`,
    ],
    ["of a session by an odd name", changed(1, sessions[0]?.session ?? "", "x"), 1, '"x" is not the id of a session'],
    [
      "with a header that was changed",
      changed(1, "v2", "v3"),
      last + 1,
      "its checksum is not that of the lines before it",
    ],
    [
      "with an event that was changed for readers",
      changed(3, '"kind":"session.', '"kind":"build.'),
      3,
      "it differs from the export: the file was changed",
    ],
    ["with an event that was changed", changed(4, /"proto":"C[^"]{40}/, '"proto":"CgFh'), 4, ""],
    ["with bytes that were changed", changed(4, /"bytes":"[^"]{8}/, '"bytes":"AAAAAAAA'), last + 1, "its checksum"],
    [
      "with bytes that are none",
      changed(4, /"bytes":"[^"]{8}/, '"bytes":"*****...'),
      4,
      "its `original.bytes` is not base64",
    ],
    ["with a line too many", textOf(lines.toSpliced(2, 0, first)), 3, "the session has begun before"],
    ["with lines the other way round", textOf([head, second, first, ...lines.slice(3)]), 2, "the session's beginning"],
    ["without a session", textOf(lines.toSpliced(1, 6)), 2, `it is not of session ${sessions[0]?.session}`],
    [
      "without its last session",
      textOf(linesOf({ sessions: [sessions[0] as ForeignSession], header: JSON.parse(head) })),
      8,
      `session ${sessions[1]?.session} has no events`,
    ],
    ["with something behind it", textOf([...lines, "{}"]), last + 2, "nothing can come after the last line"],
    ["with a wrong count", textOf(linesOf({ end: { events: 3 } })), last + 1, "it declares 3 events, but there are 12"],
    [
      "with a last line that is none",
      textOf([...lines.slice(0, -1), '{"format":"x"}']),
      last + 1,
      "it is not the last line",
    ],
    ["with JSON that is no object", textOf([head, "[1]"]), 2, "it is not a JSON object"],
    ["with an event that is none", textOf([head, "{}"]), 2, "it has no event (`proto`)"],
    [
      "that is not UTF-8",
      Buffer.concat([Buffer.from(`${head}\n`), Buffer.from([0x22, 0xff, 0x22, 10])]),
      2,
      "it is not UTF-8",
    ],
  ])("is refused when it is %s", async (_, content, line, reason) => {
    const file = put(content);
    await expect(verifySessionFile(file)).rejects.toThrow(`${file}:${line}: ${reason}`);
  });

  it("with a giant line is refused without being kept", async () => {
    const file = put(Buffer.concat([Buffer.from(`${head}\n`), Buffer.alloc(65 * 1024 * 1024, 0x61)]));
    await expect(verifySessionFile(file)).rejects.toThrow(`${file}:2: it is longer than 67108864 bytes`);
  });

  it.each(["", "{}\n", '{"timestamp":"2026-11-20T15:51:04Z"}\n', "\0\0"])(
    "is not just any file: %j",
    async (content) => {
      expect(await isSessionFile(put(content))).toBe(false);
    },
  );
});

it("sessions that are asked for in their order cost one reading of the file, others another one", async () => {
  const file = put(textOf(linesOf()));
  const { sessions: filed } = await verifySessionFile(file);
  const [first = expect.fail(), second = expect.fail()] = filed;
  await using reader = new SessionFileReader(file);
  const eventsOf = async (session: typeof first) => (await Array.fromAsync(reader.events(session))).map(encoded);
  const whole = sessions.map(({ events }) => events.map(encoded));
  expect([await eventsOf(first), await eventsOf(second)]).toEqual(whole);
  expect(reader.openings).toBe(1);
  // The reader stops in the middle, as when a connection is lost.
  for await (const _ of reader.events(first)) break;
  expect(await eventsOf(first)).toEqual(whole[0]);
  expect(reader.openings).toBe(3);
});
