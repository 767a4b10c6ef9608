import { ageText, bytesText, durationText, plainText } from "@tapedeck/client/lanes/format";
import { event, failed, inLoop } from "@tapedeck/client/lanes/testing/events";
import { expect, it } from "vitest";
import { comparePath, loopPath, routeOf, sessionPath } from "./route.ts";
import { emptySession, foldSession, indexAt, matching, pauseAfter } from "./session.ts";
import { stateSections } from "./state-sections.ts";

const routed = (path: string) => routeOf(new URL(path, "http://tapedeck"));

it.each([
  ["/", { view: "now" }],
  ["/?source=alice/shop", { view: "now", source: "alice/shop" }],
  ["/loops/01ABC.1.14", { view: "loop", loop: { session: "01ABC", runner: 1, loop: 14 } }],
  ["/sessions/01ABC?at=1-x", { view: "session", session: "01ABC", at: "1-x" }],
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
  expect(record.loops).toMatchObject([{ loop: 1, outcome: "failed", steps: [{ kind: "build", subject: "web" }] }]);
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
])("the filter %s finds %j", (asked, kinds) => {
  expect(matching(record.events, asked).map(({ kind }) => kind)).toEqual(kinds);
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
