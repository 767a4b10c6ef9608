import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type DisplayedEvent, eventLines, sourceColumn } from "./event-lines.ts";

// A time of today is shown without its date: no midnight comes between.
const noon = new Date(2026, 10, 20, 12);
beforeAll(() => void vi.useFakeTimers({ now: noon, toFake: ["Date"] }));
afterAll(() => void vi.useRealTimers());

const event = {
  position: "t-1",
  source: "demo/dana/shop/vagrant",
  kind: "terminal.written",
  summary: "==> web1: Booting VM...",
  recordedAt: noon.toISOString(),
};
const shown = (of: Partial<DisplayedEvent>, columns?: number) =>
  eventLines({ ...event, ...of }, columns).map((line) => stripVTControlCharacters(line).slice("12:00:00  ".length));

it("shows each line of a text, in a row of its own that fits, and nothing of what is there for its place alone", () => {
  const text = "==> web1: one\n\n    web1: \u001b[31mtwo\tthree\r\n";
  expect(shown({ detail: { text } }, 70)).toEqual([
    "dana/shop/vagrant  terminal.written    ==> web1: one",
    "dana/shop/vagrant  terminal.written    web1: two three",
  ]);
  expect(shown({ detail: { text } }, 58).map((line) => line.slice(-5))).toEqual(["web1…", ": tw…"]);
  expect(shown({ summary: "", detail: { text: "", noise: true } })).toEqual([]);
});

it("has the kinds of all sources below each other", () => {
  const alice = { source: "demo/alice/shop/skaffold", kind: "build.started", summary: "build" };
  const width = sourceColumn([event, alice]);
  const lines = [event, { ...event, ...alice }].flatMap((one) => eventLines(one, undefined, width));
  expect(lines.map((line) => stripVTControlCharacters(line).slice("12:00:00  ".length))).toEqual([
    "dana/shop/vagrant  terminal.written    ==> web1: Booting VM...",
    "alice/shop         build.started       build",
  ]);
  expect([sourceColumn([]), sourceColumn([alice]), sourceColumn([alice], 17)]).toEqual([12, 12, 17]);
});

it("shows other events by what they say, and why", () => {
  const error = { code: "2", message: "no such box" };
  const failed = { kind: "command.finished", summary: "up failed", outcome: "failed", error, detail: { exitCode: 0 } };
  expect(shown(failed)).toEqual(["dana/shop/vagrant  command.finished    up failed: no such box"]);
  // Skaffold quotes what a command wrote below the command; the summary has the command, and may have been cut.
  const command = `copying files: running [kubectl exec web-${"0".repeat(200)}]`;
  const message = `${command}\n - stdout: ""\n - stderr: "error: unable to upgrade connection\\n"\n - cause: exit status 1`;
  const sync = { kind: "sync.failed", outcome: "failed", error: { message }, source: "demo/alice/shop/skaffold" };
  expect(shown({ ...sync, summary: `sync of 1 file to web failed: ${command.slice(0, 160)}…` })).toEqual([
    "alice/shop    sync.failed         sync of 1 file to web failed: error: unable to upgrade connection",
  ]);
  expect(shown({ source: "demo/alice/shop/skaffold", kind: "build.started", summary: "build" })).toEqual([
    "alice/shop    build.started       build",
  ]);
});
