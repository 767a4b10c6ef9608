import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { loadRecording, recordingFolders } from "@tapedeck/fakes/skaffold/recording";
import { fromGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import { readEventLog } from "./event-log-file.ts";
import { readEventLogs } from "./read-event-logs.ts";
import { sameFrameKey } from "./same-frame-key.ts";
import { splitProcesses } from "./split-processes.ts";

const root = recordings.skaffold;
const folders = recordingFolders(root);
const folder = (name: string) => folders.find((path) => basename(path).startsWith(name)) ?? expect.fail();
const linesOf = (...parts: string[]) => readFileSync(join(...parts), "utf8").split("\n");
const hex = (frames: readonly { readonly bytes: Uint8Array }[]) =>
  frames.map(({ bytes }) => Buffer.from(bytes).toString("hex"));

const read = async (...lines: (string | object)[]) =>
  readEventLog({
    file: "events",
    lines: lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))),
  });

describe("readEventLog", () => {
  const scenario = folder("01-");

  it.each(["v1", "v2"] as const)("gives the bytes that Skaffold sent, from the %s event log file", async (channel) => {
    const lines = linesOf(scenario, `event-log-file.${channel}.ndjson`);
    const { frames, problems } = await readEventLog({ file: "f", lines });
    expect(problems).toEqual([]);
    expect(frames.every((frame) => frame.channel === channel)).toBe(true);
    expect(hex(frames)).toEqual(hex(loadRecording(scenario).messages[channel]));
  });

  const streams = folders.flatMap((path) =>
    (["v1", "v2"] as const)
      .filter((channel) => loadRecording(path).messages[channel].length > 0)
      .map((channel) => ({ path, channel, title: `${basename(path)} ${channel}` })),
  );
  it.each(streams)("gives the bytes that Skaffold sent, from its HTTP stream: $title", async ({ path, channel }) => {
    const { frames } = await readEventLog({ file: "f", lines: linesOf(path, `${channel}-events.ndjson`) });
    const sent = loadRecording(path).messages[channel];
    // Either of the two connections may have been cut first.
    const common = Math.min(frames.length, sent.length);
    expect(common).toBeGreaterThan(0);
    expect(hex(frames.slice(0, common))).toEqual(hex(sent.slice(0, common)));
  });

  it("reports bad lines by number and goes on", async () => {
    const good = { timestamp: "2026-11-20T15:51:04Z", taskEvent: { id: "Build-1" } };
    const { frames, problems } = await read(
      `\uFEFF${JSON.stringify(good)}`,
      "",
      "nonsense",
      '{"timestamp":"2026-11',
      "[1]",
      '"text"',
      { result: 3 },
      { error: { code: 13, message: "invalid UTF-8" } },
      { timestamp: "yesterday" },
      { taskEvent: {} },
      { result: good },
      { timestamp: "2026-11-20T15:51:04Z", event: { buildEvent: {}, deployEvent: {} } },
    );
    expect(frames).toHaveLength(2);
    expect(problems.map(({ file, line, problem }) => `${file}:${line} ${problem}`)).toEqual([
      "events:3 not JSON",
      "events:4 not JSON, or truncated",
      "events:5 not a message of Skaffold's event log",
      "events:6 not a message of Skaffold's event log",
      "events:7 not a message of Skaffold's event log",
      "events:8 the stream ended here: invalid UTF-8 (code 13)",
      expect.stringMatching(/^events:9 .*timestamp/i),
      "events:10 no timestamp, so no message of Skaffold's event log",
      expect.stringMatching(/^events:12 .*oneof/),
    ]);
  });
});

describe("splitProcesses", () => {
  it("separates processes that appended to the same files", async () => {
    const recorded = [
      "process-a",
      "process-b",
      "01-",
      "04-",
      "04b",
      "05-",
      "10-",
      "10b",
      "12-",
      "12b",
      "12c",
      "20-",
      "21-",
      "03-",
    ]
      .map((name) => ({ name, path: folder(name) }))
      .map(({ name, path }) => ({ name, path, messages: loadRecording(path).messages }))
      .sort(
        (a, b) =>
          Number((a.messages.v1[0] ?? a.messages.v2[0])?.at) - Number((b.messages.v1[0] ?? b.messages.v2[0])?.at),
      );
    const appended = async (channel: "v1" | "v2") =>
      (
        await Promise.all(
          recorded
            .filter(({ messages }) => messages[channel].length > 0)
            .map(
              async ({ path }) =>
                (
                  await readEventLog({ file: path, lines: linesOf(path, `${channel}-events.ndjson`) })
                ).frames,
            ),
        )
      ).flat();
    const processes = await splitProcesses([...(await appended("v1")), ...(await appended("v2"))]);
    const counts = (frames: readonly { channel: string }[]) =>
      (["v1", "v2"] as const).map((channel) => frames.filter((frame) => frame.channel === channel).length).join("+");
    const expected = recorded.map(({ messages }) => ({ v1: messages.v1, v2: messages.v2 }));
    expect(processes.map(({ frames }) => counts(frames))).toEqual(
      expected.map(({ v1, v2 }) => `${v1.length}+${v2.length}`),
    );
    expect(processes.map(({ frames }) => hex(frames.filter(({ channel }) => channel === "v1")))).toEqual(
      expected.map(({ v1 }) => hex(v1)),
    );
    expect(processes.filter(({ maybeContinues }) => maybeContinues)).toHaveLength(1); // 0.40 has no v2
  });

  // Seconds since the first line.
  const at = (second: number) => `2026-11-20T15:51:${String(second).padStart(2, "0")}.5Z`;
  const meta = (second: number, runID: string) => [
    { timestamp: at(second), event: { metaEvent: { entry: "Starting Skaffold: &{Version:v2.14.2 ", metadata: {} } } },
    { timestamp: at(second), metaEvent: { metadata: { runID } } },
  ];
  const loop = (second: number, v1: number, v2: number) => [
    { timestamp: at(second), event: { devLoopEvent: { iteration: v1, status: "In Progress" } } },
    { timestamp: at(second), taskEvent: { id: `DevLoop-${v2}`, task: "DevLoop", iteration: v2, status: "InProgress" } },
  ];
  const text = (second: number, taskId: string, message: string) => [
    { timestamp: at(second), skaffoldLogEvent: { taskId, subtaskId: "-1", message } },
  ];
  const sizes = async (...lines: object[][]) =>
    (await splitProcesses((await read(...lines.flat())).frames)).map(({ frames }) => frames.length);

  it.each<[string, object[][], number[]]>([
    ["an edited configuration is the same process", [meta(0, "a"), loop(1, 0, 1), meta(2, "b"), loop(3, 0, 2)], [8]],
    [
      "… also when it prints something first",
      [meta(0, "a"), loop(1, 0, 1), text(2, "DevLoop-1", "x"), meta(3, "b"), text(4, "DevLoop-1", "y"), loop(5, 0, 2)],
      [10],
    ],
    ["loops that begin again are another process", [meta(0, "a"), loop(1, 0, 1), meta(2, "b"), loop(3, 0, 1)], [4, 4]],
    [
      "… with what it printed before",
      [
        meta(0, "a"),
        loop(1, 0, 1),
        text(2, "DevLoop-1", "bye"),
        text(3, "DevLoop-0", "hi"),
        meta(4, "b"),
        loop(5, 0, 1),
      ],
      [5, 5],
    ],
    [
      "one-shot commands make one runner each",
      [meta(0, "a"), text(1, "Build-0", "x"), meta(5, "b"), text(6, "Build-0", "x")],
      [3, 3],
    ],
    [
      "… the longest pause is between them",
      [meta(0, "a"), text(1, "DevLoop-0", "bye"), text(8, "DevLoop-0", "hi"), meta(9, "b")],
      [3, 3],
    ],
    [
      "first words begin a process, even one without a runner",
      [text(0, "DevLoop-0", "starting gRPC server on port 1"), text(1, "DevLoop-0", "starting gRPC server on port 1")],
      [1, 1],
    ],
  ])("%s", async (_, lines, expected) => expect(await sizes(...lines)).toEqual(expected));

  it("can only guess without v2", async () => {
    const v1 = [...meta(0, "a"), ...loop(1, 0, 1), ...meta(2, "b"), ...loop(3, 0, 2)].filter((line) => "event" in line);
    const processes = await splitProcesses((await read(...v1)).frames);
    expect(processes.map(({ frames, maybeContinues }) => [frames.length, maybeContinues])).toEqual([
      [2, false],
      [2, true],
    ]);
  });

  it("puts the lines of containers into the process that was running", async () => {
    const line = (second: number) => ({ timestamp: at(second), applicationLogEvent: { message: "x" } });
    const { frames } = await read(...meta(0, "a"), ...meta(5, "b"), line(2), line(6), line(7));
    expect(
      (await splitProcesses(frames)).map(
        (process) => process.frames.filter(({ channel }) => channel === "logs").length,
      ),
    ).toEqual([1, 2]);
  });

  it("orders channels by time and keeps each in its own order", async () => {
    const [v1, v2] = [
      { timestamp: at(1), entry: "late" },
      { timestamp: at(2), taskEvent: { id: "x" } },
    ];
    const { frames } = await read({ timestamp: at(3), entry: "first" }, v1, v2);
    expect((await splitProcesses(frames))[0]?.frames.map(({ channel }) => channel)).toEqual(["v2", "v1", "v1"]);
  });

  it("has no process in nothing", async () => expect(await splitProcesses([])).toEqual([]));
});

describe("readEventLogs", () => {
  it("reads F and the F.v2 beside it", async () => {
    const scenario = folder("01-");
    const folderOfLogs = mkdtempSync(join(tmpdir(), "tapedeck-import-"));
    try {
      const file = join(folderOfLogs, "events");
      writeFileSync(file, readFileSync(join(scenario, "event-log-file.v1.ndjson")));
      writeFileSync(`${file}.v2`, readFileSync(join(scenario, "event-log-file.v2.ndjson")));
      const { processes, problems } = await readEventLogs([file]);
      expect(problems).toEqual([]);
      expect(processes.map(({ frames }) => frames.length)).toEqual([35 + 306]);
      expect((await readEventLogs([file, `${file}.v2`])).processes).toEqual(processes);
      await expect(readEventLogs([`${file}.missing`])).rejects.toThrow("ENOENT");
    } finally {
      rmSync(folderOfLogs, { recursive: true });
    }
  });
});

describe("a line of an event log", () => {
  it.each([
    ["U+2028", "\u2028"],
    ["U+2029", "\u2029"],
  ])("may have %s as it is, and ends with \\n or \\r\\n", async (_, separator) => {
    const folderOfLogs = mkdtempSync(join(tmpdir(), "tapedeck-import-"));
    try {
      const file = join(folderOfLogs, "events");
      const line = (second: number) =>
        JSON.stringify({ timestamp: `2026-01-30T12:00:0${second}Z`, entry: `a${separator}b` });
      writeFileSync(file, `${line(1)}\r\n${line(2)}`);
      const { processes, problems } = await readEventLogs([file]);
      expect(problems).toEqual([]);
      expect(processes.map(({ frames }) => frames.length)).toEqual([2]);
    } finally {
      rmSync(folderOfLogs, { recursive: true });
    }
  });
});

describe("sameFrameKey", () => {
  it("does not see the order of a map", () => {
    const debug = (debugPorts: object) =>
      fromGatewayJson(messageType("proto.LogEntry"), { event: { debuggingContainerEvent: { debugPorts } } } as never);
    const [one, other] = [debug({ a: 1, b: 2 }), debug({ b: 2, a: 1 })];
    expect(Buffer.compare(one, other)).not.toBe(0);
    expect(sameFrameKey("v1", one)).toBe(sameFrameKey("v1", other));
    expect(sameFrameKey("v1", debug({ a: 1 }))).not.toBe(sameFrameKey("v1", one));
    expect(sameFrameKey("v1", Uint8Array.of(0xff))).toBe("/w==");
  });
});
