import { expect, it } from "vitest";
import { axisWidth, linesUpTo, namedBins } from "../../parts/chart-axes.ts";
import { binsBetween, binsOf } from "./bins.ts";
import { type Choice, choiceOf, trendsPath } from "./choice.ts";
import { causesOf, causeText, commandKey, commandText, shareText, waitedFor } from "./figures.ts";
import { sqlOf } from "./sql.ts";
import { whoseFigures } from "./whose.ts";

const now = Date.UTC(2026, 10, 20, 9, 40);
const iso = (at: number | undefined) => new Date(at ?? 0).toISOString();
const choice = (query: string): Choice => choiceOf(`?zone=UTC&${query}`);

it.each([
  ["range=24h", { range: "24h", group: "hour" }],
  ["range=1y", { range: "1y", group: "week" }],
  ["range=1y&group=hour", { range: "1y", group: "day" }],
  ["range=ages", { range: "30d", group: "day" }],
  ["from=2026-11-03&to=2026-11-01", { range: { from: "2026-11-01", to: "2026-11-03" }, group: "day" }],
  ["from=2026-11-03&to=tomorrow", { range: "30d" }],
  ["zone=Europe/Atlantis", { zone: "UTC" }],
  ["source=alice/shop/skaffold&developer=bob", { developers: ["bob", "alice"], projects: ["shop"] }],
  ["pick=wait&since=2026-11-01", { pick: { chart: "wait", since: "2026-11-01", until: "2026-11-01" } }],
  ["by=project&label=branch=main&label=nonsense", { by: "project", labels: ["branch=main"] }],
  ["by=nobody&sql=wait&sql=slow", { labels: [], sql: ["wait", "slow"] }],
  ["pick=failures&of=build/X", { pick: { chart: "failures", of: "build/X" } }],
  ["pick=waits&of=deploy", { pick: { chart: "waits", of: "deploy" } }],
  ["by=project&pick=sides&of=shop", { by: "project", pick: { chart: "sides", of: "shop" } }],
  ["pick=commands&of=up/web1", { pick: { chart: "commands", of: "up/web1" } }],
])("%s chooses %j", (query, expected) => {
  expect(choice(query)).toMatchObject(expected);
});

it("a choice's path leads back to it, in any time zone", () => {
  const query =
    "from=2026-11-01&to=2026-11-09&group=week&zone=Asia/Tokyo&developer=a%26b&developer=c&project=p&label=a%3Db%3Dc&by=developer&sql=wait";
  const chosen = choiceOf(`${query}&pick=slow&since=2026-11-02&until=2026-11-09&of=shop/web`);
  expect(choiceOf(trendsPath(chosen).split("?")[1] ?? "")).toEqual(chosen);
  expect(chosen).toMatchObject({ labels: ["a=b=c"], by: "developer", sql: ["wait"] });
  expect(chosen).toMatchObject({ zone: "Asia/Tokyo", developers: ["a&b", "c"] });
});

it("a command is named with its machine, or alone where it was for all of them", () => {
  expect(commandText(commandKey({ command: "up", machine: "web1" }))).toBe("up on web1");
  expect(commandText(commandKey({ command: "box add" }))).toBe("box add");
});

it("bins are whole hours, days and weeks of a time zone, up to now", () => {
  const hours = binsOf({ ...choice("range=24h"), zone: "Asia/Kolkata" }, now);
  expect([hours.length, hours[0]?.key, hours.at(-1)?.key]).toEqual([
    24,
    "2026-11-19T10:30:00Z",
    "2026-11-20T09:30:00Z",
  ]);
  const days = binsOf({ ...choice("range=7d"), zone: "America/New_York" }, now);
  expect(days.map(({ key }) => key.slice(-2))).toEqual(["14", "15", "16", "17", "18", "19", "20"]);
  expect([iso(days[0]?.from), iso(days.at(-1)?.to)]).toEqual(["2026-11-14T05:00:00.000Z", "2026-11-21T05:00:00.000Z"]);
  const weeks = binsOf(choice("from=2026-11-04&to=2026-11-17"), now);
  expect(weeks).toHaveLength(14);
  expect(binsOf(choice("from=2026-11-04&to=2026-11-17&group=week"), now).map(({ key }) => key)).toEqual([
    "2026-11-02",
    "2026-11-09",
    "2026-11-16",
  ]);
});

it("a day has 23 or 25 hours when clocks change, and begins at one where midnight is skipped", () => {
  const lengths = (zone: string, from: string, to: string) =>
    binsOf({ ...choice(`from=${from}&to=${to}&group=day`), zone }, now).map((bin) => (bin.to - bin.from) / 3_600_000);
  expect(lengths("Europe/Berlin", "2026-10-24", "2026-10-26")).toEqual([24, 25, 24]);
  expect(lengths("Europe/Berlin", "2026-03-28", "2026-03-30")).toEqual([24, 23, 24]);
  expect(lengths("Asia/Beirut", "2026-03-28", "2026-03-30")).toEqual([24, 23, 24]);
  const hours = binsOf({ ...choice("from=2026-10-25&to=2026-10-25&group=hour"), zone: "Europe/Berlin" }, now);
  expect(hours).toHaveLength(25);
});

it("the bins between two names are picked, and none where a name is of another range", () => {
  const bins = binsOf(choice("range=7d"), now);
  expect(binsBetween(bins, "2026-11-15", "2026-11-17")).toHaveLength(3);
  expect(binsBetween(bins, undefined, undefined)).toBe(bins);
  expect(binsBetween(bins, "2025-11-15", "2026-11-17")).toEqual([]);
});

it("causes are counted by bins: the most frequent by name, the others together", () => {
  const bins = binsOf(choice("range=7d"), now);
  const row = (day: string, cause: string, failures: number) => ({
    day,
    reason: "build",
    cause,
    failures,
    developers: 1,
  });
  const rows = [
    row("2026-11-20", "BUILD_A", 3),
    row("2026-11-19", "BUILD_A", 1),
    ...[row("2026-11-20", "BUILD_B", 2), row("2026-11-20", "BUILD_C", 1), row("2026-11-14", "BUILD_D", 1)],
    row("2025-01-01", "BUILD_OLD", 9),
  ];
  const { top, rest, count } = causesOf(rows, bins, "day", 2);
  expect(top.map(({ key, counts }) => [key, counts.slice(-2)])).toEqual([
    ["build/BUILD_A", [1, 3]],
    ["build/BUILD_B", [0, 2]],
  ]);
  expect([rest?.counts, count]).toEqual([[1, 0, 0, 0, 0, 0, 1], 8]);
  expect(causesOf(rows.slice(0, 4), bins, "day", 2).rest).toBeUndefined();
});

it.each([
  [{ reason: "compile error", cause: "compile error: cannot find name" }, "compile error: cannot find name"],
  [{ reason: "compile error", cause: "" }, "compile error"],
  [{ reason: "", cause: "" }, "not known"],
])("%j in words: %s", (cause, text) => {
  expect(causeText({ key: "", ...cause })).toBe(text);
});

it("SQL quotes what a URL may hold", () => {
  const request = {
    ...choice("developer=o'neil&range=7d&label=it's=a=b"),
    workspace: "a'b",
    bins: binsOf(choice("range=7d"), now),
  };
  const text = sqlOf("wait", request);
  expect(text).toContain("workspace = 'a''b'");
  expect(text).toContain("developer in ('o''neil')");
  expect(text).toContain("labels ->> 'it''s' = 'a=b'");
  expect(sqlOf("flaky", request)).toContain("b.labels ->> 'it''s' = 'a=b'");
});

it("SQL finds a build's next one where no loops are reported, too", () => {
  const request = { ...choice("range=7d"), workspace: "acme", bins: binsOf(choice("range=7d"), now) };
  expect(sqlOf("flaky", request)).toContain("(n.loop, n.start_position) > (b.loop, b.start_position)");
});

it("axes have three or four round lines, and names that do not touch", () => {
  const lines = (max: number, unit: "duration" | "share" | "count") => linesUpTo(max, unit);
  expect(lines(17_800, "duration")).toEqual([0, 10_000, 20_000]);
  expect(lines(200_000, "duration")).toEqual([0, 120_000, 240_000]);
  expect(lines(0, "count")).toEqual([0, 1]);
  expect(lines(11, "count")).toEqual([0, 5, 10, 15]);
  expect(lines(0.18, "share")).toEqual([0, 0.1, 0.2]);
  expect(namedBins(30, 400, 64)).toEqual([4, 9, 14, 19, 24, 29]);
  expect(namedBins(1, 400, 64)).toEqual([0]);
  // Charts whose names are short are as wide as each other.
  expect([["45 s", "0"], ["1 min 30 s"]].map(axisWidth)).toEqual([60, 80]);
});

it("shares have the digits that distinguish them", () => {
  expect([0, 0.000_1, 0.004, 0.12, 1].map(shareText)).toEqual(["0 %", "< 0.1 %", "0.4 %", "12 %", "100 %"]);
});

it("the phases that loops waited for are longest first, without those that took no time, and by bins", () => {
  const figures = (build: number, check: number) => {
    const none = { waitedMs: 0, share: 0 };
    const of = (ms: number) => ({ waitedMs: ms, share: ms / (build + check) });
    const rest = { sync: none, test: none, render: none, deploy: none, other: none };
    return { phases: { ...rest, build: of(build), check: of(check) } };
  };
  expect(waitedFor(figures(100, 300), [figures(50, 50), undefined])).toEqual([
    { phase: "check", ms: 300, share: 0.75, series: [0.5, null] },
    { phase: "build", ms: 100, share: 0.25, series: [0.5, null] },
  ]);
  expect(waitedFor(undefined, [])).toEqual([]);
});

it("figures that can say whose they are belong to a viewer from whom others are hidden; all else is the team's", () => {
  const alice = { seesOnlyOwn: true, developer: "alice" } as const;
  const whose = (query: string) =>
    (["sides", "waits", "failures"] as const).map((chart) => whoseFigures(chart, choice(query), alice));
  expect(whose("")).toEqual(["team", "team", "own"]);
  expect(whose("by=project&project=shop")).toEqual(["team", "team", "own"]);
  expect(whose("by=developer")).toEqual(["own", "team", "own"]);
  expect(whose("label=branch=main")).toEqual(["own", "own", "own"]);
  expect(whose("developer=alice")).toEqual(["own", "own", "own"]);
  expect(whoseFigures("failures", choice(""), { developer: "alice" })).toBeUndefined();
});
