import { stripVTControlCharacters } from "node:util";
import type { Lane } from "@tapedeck/client/lanes/now";
import type { Loop, Step } from "@tapedeck/client/lanes/step";
import { expect, it } from "vitest";
import { changesOf, screenOf } from "./screen.ts";

const at = Date.parse("2026-01-31T12:00:00Z");

const step = (of: Partial<Step>): Step => ({
  kind: "build",
  subject: "",
  instance: "",
  startedAt: at - 4_000,
  endedAt: undefined,
  outcome: undefined,
  error: "",
  cause: null,
  errorCode: "",
  isUntimed: false,
  isCached: false,
  position: "",
  endPosition: undefined,
  ...of,
});
const loop = (of: Partial<Loop>): Loop => ({
  ...step({ kind: "loop" }),
  session: "S",
  runner: 1,
  loop: 1,
  steps: [],
  ...of,
});
const good = loop({ startedAt: at - 60_000, endedAt: at - 58_000, outcome: "succeeded" });
const row = (source: string, loops: readonly Loop[], of: Partial<Lane> = {}): [string, Lane] => [
  source,
  {
    source,
    name: source.split("/").slice(1, 3).join("/"),
    upstream: "skaffold",
    status: "recording",
    gaps: 0,
    lostSince: undefined,
    session: "S",
    labels: {},
    lastEventAt: at,
    loops,
    apps: new Map(),
    ports: [],
    ...of,
  },
];
const text = "kubectl apply: exit status 1";
const place = { group: "", file: null, line: null, advice: null, phase: "", subject: "", tries: 1 };
const cause = { text, reason: "unknown", ...place };
const failed = loop({
  startedAt: at - 10_000,
  endedAt: at - 8_000,
  outcome: "failed",
  error: "deploy failed",
  steps: [step({ kind: "deploy", endedAt: at - 8_000, outcome: "failed", error: "exit status 1", cause })],
});
const now = new Map([
  row("acme/alice/shop/skaffold", [good, loop({ steps: [step({ subject: "web" })] })]),
  row("acme/bob/shop/skaffold", [good, failed]),
  row("acme/erin/api/skaffold", [good], { status: "lost", lostSince: at - 3_600_000 }),
]);
const screen = (columns: number, rows: number) =>
  screenOf(now, { columns, rows, at, none: "" }).map((line) => stripVTControlCharacters(line));

it("failures come first, with their cause, since when, and the loops before", () => {
  const lines = screen(100, 40);
  expect(lines[0]).toBe("1 failing · 1 running · 1 lost");
  expect(lines.filter((line) => /^[A-Z]+$/.test(line))).toEqual(["FAILING", "RUNNING", "LOST"]);
  expect(lines[3]).toMatch(/^bob\/shop {4}✕ deploy {2}kubectl apply: exit status 1 +for 8 s {2}✓✕$/);
  expect(lines.find((line) => line.startsWith("alice/shop"))).toMatch(/▶ build web {2}4 s \(usually 2\.0 s\) +✓$/);
  // It is late: what is usual is a tick in its bar.
  expect(lines.find((line) => line.includes("▒"))).toMatch(/^ +▒+│▒+$/);
});

it("no line is longer than the terminal, and what does not fit below is counted", () => {
  for (const columns of [30, 50, 80]) {
    expect(Math.max(...screen(columns, 40).map((line) => line.length))).toBeLessThanOrEqual(columns);
  }
  const lines = screen(80, 6);
  expect(lines).toHaveLength(5);
  expect(lines.at(-1)).toBe("… 7 more lines: a larger window shows them");
  expect(screen(30, 6).at(-1)).toBe("… 6 more lines: a larger wind…");
});

it("into a pipe a source is a line when it is another than before", () => {
  const said = new Map<string, string>();
  const changes = () => changesOf(now, said, at).map((line) => line.slice("2026-01-31T12:00:00.000Z  ".length));
  expect(changes()).toEqual([
    "alice/shop  running  build web",
    "bob/shop  failed  deploy: kubectl apply: exit status 1",
    expect.stringMatching(/^erin\/api {2}unknown {2}last seen/),
  ]);
  expect(changes()).toEqual([]);
});
