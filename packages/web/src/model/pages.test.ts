import { ageText, bytesText, durationText, fullTimeText, plainText, stampText } from "@tapedeck/client/lanes/format";
import { event, failed, inLoop } from "@tapedeck/client/lanes/testing/events";
import { expect, it } from "vitest";
import { eventCount, foldedOutput } from "./event-rows.ts";
import { changedPath, comparePath, exactSide, loopPath, routeOf, sessionPath } from "./route.ts";
import { emptySession, endOf, foldSession, indexAt, matching, pauseAfter } from "./session.ts";
import { stateSections } from "./state-sections.ts";

const routed = (path: string) => routeOf(new URL(path, "http://tapedeck"));

it.each([
  ["/", { view: "now" }],
  ["/?source=alice/shop", { view: "now", source: "alice/shop" }],
  ["/?filter=web", { view: "now", filter: "web" }],
  ["/loops/01ABC.1.14", { view: "loop", loop: { session: "01ABC", runner: 1, loop: 14 }, output: {} }],
  [
    "/loops/01ABC.1.14?step=1-x&find=a+b&wrap=off",
    {
      view: "loop",
      loop: { session: "01ABC", runner: 1, loop: 14 },
      output: { step: "1-x", find: "a b", wrap: "off" },
    },
  ],
  ["/sessions/01ABC?at=1-x", { view: "session", session: "01ABC", at: "1-x", output: {} }],
  [
    "/sessions/01ABC?filter=kind:*&speed=50&step=2-x",
    { view: "session", session: "01ABC", filter: "kind:*", speed: "50", output: { step: "2-x" } },
  ],
  ["/compare?left=alice/shop&right=01ABC.1.2", { view: "compare", left: "alice/shop", right: "01ABC.1.2" }],
  ["/compare", { view: "compare" }],
  ["/health", { view: "health" }],
  ["/loops/01ABC", { view: "missing", path: "/loops/01ABC" }],
  ["/trends?range=7d", { view: "trends", query: "?range=7d" }],
  ["/trend", { view: "missing", path: "/trend" }],
])("%s shows %j", (path, route) => {
  expect(routed(path)).toEqual(route);
});

it("a view's path leads back to it", () => {
  expect(routed(loopPath({ session: "01ABC", runner: 2, loop: 3 }))).toMatchObject({ loop: { runner: 2, loop: 3 } });
  expect(routed(sessionPath("01ABC", "2&3"))).toMatchObject({ at: "2&3" });
  const sides = { left: "a&b/c@2026-01-31T12:00:00Z", right: "01ABC.1.2" };
  expect(routed(comparePath(sides.left, sides.right))).toMatchObject(sides);
  expect(routed(comparePath(undefined, "bob/shop"))).toEqual({ view: "compare", right: "bob/shop" });
});

it("a path has what is changed in it, keeps the rest, and drops what is empty", () => {
  expect(changedPath("/sessions/01A?at=1-x&filter=a", { at: "2-x", filter: "", speed: "50" })).toBe(
    "/sessions/01A?at=2-x&speed=50",
  );
  expect(changedPath("/?source=bob/shop", { filter: "kind:a&b" })).toBe("/?source=bob/shop&filter=kind:a%26b");
  expect(changedPath("/?filter=x", { filter: undefined })).toBe("/");
});

it.each([
  [820, "820 ms"],
  [2_345, "2.3 s"],
  [9_960, "10 s"],
  [72_000, "1 min 12 s"],
  [3_600_000, "1 h"],
  [187_200_000, "2 d 4 h"],
])("%d ms is %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

it.each([
  [0, "0 B"],
  [1_023, "1023 B"],
  [1_400_000, "1.3 MiB"],
  [250 * 2 ** 30, "250 GiB"],
])("%d bytes are %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});

it("an age has one unit", () => {
  expect([900, 12_000, 240_000, 7_300_000].map(ageText)).toEqual(["just now", "12 s", "4 min", "2 h"]);
});

it("a time of another day has its date, and all that is known of it for those who ask", () => {
  const now = new Date(2026, 10, 21, 12).getTime();
  const at = (day: number, year = 2026) => new Date(year, 10, day, 9, 4, 7, 31).getTime();
  expect([at(21), at(20), at(20, 2025)].map((time) => stampText(time, now))).toEqual([
    "09:04:07",
    "20 Nov 09:04:07",
    "20 Nov 2025 09:04:07",
  ]);
  expect(fullTimeText(at(20))).toMatch(/^Fri 20 Nov 2026, 09:04:07\.031 \S+$/);
});

it("only a loop can be pinned, or a session as of a position", () => {
  const side = { session: "01A", runner: 1, loop: 2, position: "3-x" };
  expect(exactSide({ ...side, unit: "loop" })).toBe("01A.1.2");
  expect(exactSide({ ...side, unit: "command" })).toBe("01A@3-x");
});

it("output loses its colours and nothing else", () => {
  const esc = String.fromCharCode(27);
  expect(plainText(`${esc}[31mred${esc}[0m [1m]\r\n`)).toBe("red [1m]\n");
});

const events = [
  event(0, "session.started"),
  inLoop(1, "loop.started", 1),
  event(2, "mirror.received"),
  inLoop(3, "build.failed", 1, { subject: "web", summary: "build of web failed", ...failed("exit 3") }),
  inLoop(4, "loop.failed", 1, failed("exit 3")),
  event(60, "log.written", { summary: "Watching" }),
];
const record = foldSession(emptySession, events);

it("a session has its events without mirrors, and its loops", () => {
  expect(record.events.map(({ kind }) => kind)).not.toContain("mirror.received");
  expect(record.since).toBe(Date.parse("2026-01-01T00:00:00Z"));
  expect(record.loops).toMatchObject([{ loop: 1, outcome: "failed", steps: [{ kind: "build", subject: "web" }] }]);
});

it("the end of a session ends what was not seen to end", () => {
  const open = [inLoop(1, "loop.started", 1), inLoop(2, "build.started", 1, { subject: "web" })];
  for (const kind of ["session.ended", "session.lost"]) {
    const { loops, ended: reason } = foldSession(emptySession, [
      ...open,
      event(9, kind, { detail: { reason: "process ended" } }),
    ]);
    expect(reason).toBe("process ended");
    const ended = { outcome: "unknown", endedAt: Date.parse("2026-01-01T00:00:09Z") };
    expect(loops).toMatchObject([{ ...ended, steps: [ended] }]);
  }
  expect(endOf({ endedAt: null, endReason: "end not seen" })).toBe("end not seen");
  expect(endOf({ endedAt: null, endReason: null })).toBeUndefined();
});

const printed = (at: number, text: string, more: { task?: string; subtask?: string; level?: string } = {}) =>
  event(at, "log.written", {
    summary: text.trim(),
    detail: { text, level: "", task: "Build-1", subtask: "web", pod: "", container: "", noise: false, ...more },
  });

it("the pieces of a line that its step printed are one row", () => {
  const before = foldSession(emptySession, [
    printed(0, " - web -> "),
    printed(1, "other\n", { subtask: "api" }),
    event(2, "build.started"),
  ]);
  const { rows, events } = foldSession(before, [
    printed(3, "web:1"),
    printed(4, "23\n"),
    printed(5, "next\n"),
    printed(6, "a", { task: "" }),
    printed(7, "b", { task: "" }),
  ]);
  expect(rows.map(({ text }) => text)).toEqual([" - web -> web:123", "other", "build.started", "next", "a", "b"]);
  expect([rows[0]?.position, rows[0]?.count]).toEqual([events[0]?.position, 3]);
  expect(eventCount(rows)).toBe(events.length);
  expect(matching(rows, "web:123")).toEqual([rows[0]]);
  expect(before.rows[0]?.text).toBe(" - web -> ");
});

it("output that looks like an error is bad, as is what failed", () => {
  const { rows } = foldSession(emptySession, [
    printed(0, "error: nope\n"),
    printed(1, "0 failed\n"),
    printed(2, "broken\n", { level: "ERROR" }),
    inLoop(3, "build.failed", 1, failed("exit 3")),
  ]);
  expect(rows.map(({ isBad }) => isBad)).toEqual([true, false, true, true]);
});

it("long output is one row that says how many lines it holds, until it is opened; errors stay", () => {
  const lines = (from: number, count: number) =>
    Array.from({ length: count }, (_, at) => printed(from + at, `line ${from + at}\n`));
  const { rows } = foldSession(emptySession, [
    ...lines(0, 5),
    event(5, "build.started"),
    ...lines(6, 2),
    printed(8, "error: nope\n"),
    ...lines(9, 4),
  ]);
  const shown = foldedOutput(rows, new Set());
  const texts = ["line 0", "build.started", "line 6", "line 7", "error: nope", "line 9"];
  expect(shown.map(({ text }) => text)).toEqual(texts);
  expect(shown.map(({ folded }) => folded)).toEqual([4, undefined, undefined, undefined, undefined, 3]);
  expect(eventCount(shown)).toBe(rows.length);
  const opened = foldedOutput(rows, new Set([rows[0]?.position ?? ""]));
  expect(opened.slice(0, 6)).toEqual(rows.slice(0, 6));
});

it("a position is the last event that is not after it", () => {
  const [first, second] = record.events;
  expect(indexAt(record.events, second?.position ?? "")).toBe(1);
  expect(indexAt(record.events, `${first?.position}a`)).toBe(0);
  expect([indexAt(record.events, ""), indexAt(record.events, "z"), indexAt([], "z")]).toEqual([0, 4, 0]);
});

it.each([
  ["kind:build.*", ["build.failed"]],
  ["kind:*.failed outcome:failed", ["build.failed", "loop.failed"]],
  ["subject:web exit", ["build.failed"]],
  ["WATCH", ["log.written"]],
])("the filter %s finds %j", (filter, kinds) => {
  expect(matching(record.rows, filter).map(({ event }) => event.kind)).toEqual(kinds);
});

it("a session plays in the intervals of its events, long waits cut short", () => {
  expect([pauseAfter(record.events, 0, 1), pauseAfter(record.events, 0, 10), pauseAfter(record.events, 3, 1)]).toEqual([
    1_000, 100, 2_000,
  ]);
});

it("a Skaffold's state is its artifacts, phases and ports", () => {
  const v2 = {
    buildState: { artifacts: { web: "Succeeded", api: "InProgress" } },
    deployState: { status: "Failed" },
    testState: { status: "NotStarted" },
    forwardedPorts: { "8080": { localPort: 8080, resourceName: "web", targetPort: { intVal: 80 } } },
  };
  expect(stateSections("skaffold", { v2 })).toEqual([
    {
      title: "Artifacts",
      rows: [
        { name: "web", value: "succeeded", tone: "good" },
        { name: "api", value: "in progress", tone: "running" },
      ],
    },
    { title: "Phases", rows: [{ name: "deploy", value: "failed", tone: "bad" }] },
    {
      title: "Ports",
      rows: [{ name: "web:80", value: "localhost:8080", tone: "good", link: "http://localhost:8080" }],
    },
  ]);
});

it("a Skaffold's state is that of its first API as long as the second has none", () => {
  const v1 = { buildState: { artifacts: { web: "In Progress" } } };
  expect(stateSections("skaffold", { v1, v2: { buildState: null } })).toMatchObject([
    { title: "Artifacts", rows: [{ name: "web", value: "in progress", tone: "running" }] },
  ]);
});

it("a rkt host's state is its pods with the codes of their apps; a Vagrant project's its machines", () => {
  const apps = [{ name: "batch", state: "APP_STATE_EXITED", exit_code: 7 }];
  const pods = [{ id: "453d7b6e-d982", state: "POD_STATE_RUNNING", apps }];
  expect(stateSections("rkt", { pods })).toEqual([
    { title: "Pod 453d7b6e · running", rows: [{ name: "batch", value: "exited 7", tone: "bad" }] },
  ]);
  const targets = [{ name: "web1", state: "CREATED", record: { state: { short_description: "not created" } } }];
  expect(stateSections("vagrant", { targets })).toEqual([
    { title: "Machines", rows: [{ name: "web1", value: "not created", tone: "quiet" }] },
  ]);
});
