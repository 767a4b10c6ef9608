import { LogEntry } from "@tapedeck/proto/skaffold/v1/skaffold";
import type { ChangedFiles } from "@tapedeck/proto/tapedeck/v1/event";
import { until } from "@tapedeck/shared/testing/until";
import { timestampOfMs } from "@tapedeck/shared/time/timestamp";
import type { TapItem } from "@tapedeck/tap/tap";
import { expect, it } from "vitest";
import { type GitName, type GitState, gitNames } from "../../recording/labels.ts";
import { LoopLabelReader } from "./loop-labels.ts";

const clean: GitState = { branch: "main", commit: "a1", dirty: "false" };
const own = { ...clean, host: "box", ticket: "7" } as Record<string, string>;
const never = new AbortController().signal;

function loopFrame(ms: number, connection = "C1", status = "In Progress"): TapItem {
  const event = { event_type: { $case: "devLoopEvent", value: { iteration: 1, status } } } as const;
  const bytes = Buffer.from(LogEntry.encode(LogEntry.fromPartial({ timestamp: timestampOfMs(ms), event })).finish());
  const at = timestampOfMs(ms + 7);
  return { connection, at, what: { $case: "frame", value: { channel: "v1", bytes, more: false } } };
}

/** A tap whose git answers what is set, once the test lets it. */
function watched(names: readonly GitName[] = gitNames) {
  const items: TapItem[] = [];
  const questions: ((state: GitState) => void)[] = [];
  const files: ChangedFiles[] = [];
  const loops = new LoopLabelReader({
    labels: Promise.resolve(own),
    names,
    append: (item: TapItem) => items.push(item),
    readGit: () => new Promise((resolve) => void questions.push(resolve)),
    readFiles: async () => files.shift(),
  });
  /** A loop begins, and git answers. */
  const loop = async (ms: number, state: GitState, connection?: string) => {
    loops.observe(loopFrame(ms, connection));
    await until(() => questions.length > 0, { message: "git to be asked" });
    questions.shift()?.(state);
    await loops.idle();
  };
  const reported = () => items.map(({ what }) => (what?.$case === "labelled" ? what.value.labels : undefined));
  return { loops, items, questions, files, loop, reported };
}

it("reports what has changed since the session began, with the loop's own time", async () => {
  const { loop, items, reported } = watched();
  const now = Date.now();
  await loop(now, clean);
  expect(items).toEqual([]);
  await loop(now + 10, { branch: "fix", commit: "b2", dirty: "true" });
  expect(items).toEqual([
    {
      connection: "C1",
      at: timestampOfMs(now + 17),
      what: {
        $case: "labelled",
        value: {
          labels: { branch: "fix", commit: "b2", dirty: "true" },
          since: timestampOfMs(now + 10),
          changed_files: undefined,
        },
      },
    },
  ]);
  await loop(now + 20, { branch: "fix", commit: "b2", dirty: "true" });
  expect(items).toHaveLength(1);
  await loop(now + 30, clean);
  expect(reported().at(-1)).toEqual({ branch: "main", commit: "a1", dirty: "false" });
});

it("reports changed files with the labels of that loop, which may be the session's", async () => {
  const { loop, items, files } = watched();
  const changed_files = { files: [{ path: "web/a.ts", change: "modified" }], more: 2 };
  files.push(changed_files, { files: [], more: 0 });
  await loop(Date.now(), clean);
  await loop(Date.now(), clean);
  const values = items.map(({ what }) => (what?.$case === "labelled" ? what.value : undefined));
  expect(values).toMatchObject([{ labels: clean, changed_files }]);
});

it("reports that there is no branch any more, and takes no silence of git for that", async () => {
  const { loop, reported } = watched();
  const now = Date.now();
  await loop(now, { branch: undefined, commit: undefined, dirty: undefined });
  await loop(now, { branch: "", commit: "b2", dirty: undefined });
  await loop(now, { branch: undefined, commit: "b2", dirty: undefined });
  expect(reported()).toEqual([{ branch: "", commit: "b2", dirty: "false" }]);
});

it("leaves out what CI or the user has set, and asks nothing where that is all", async () => {
  const { loop, reported } = watched(["commit", "dirty"]);
  await loop(Date.now(), { branch: "fix", commit: "b2", dirty: "false" });
  expect(reported()).toEqual([{ commit: "b2", dirty: "false" }]);
  const silent = watched([]);
  silent.loops.observe(loopFrame(Date.now()));
  await silent.loops.idle();
  expect(silent.questions).toEqual([]);
});

it("reports to another connection again what its session does not know", async () => {
  const { loop, items } = watched();
  const now = Date.now();
  const fix = { branch: "fix", commit: "b2", dirty: "false" };
  await loop(now, fix);
  await loop(now, fix, "C2");
  expect(items.map(({ connection }) => connection)).toEqual(["C1", "C2"]);
});

it("reports to another connection what the session began with, because it may have learned otherwise since", async () => {
  const { loop, reported } = watched();
  const now = Date.now();
  await loop(now, { branch: "fix", commit: "b2", dirty: "false" });
  await loop(now, clean, "C2");
  await loop(now, clean, "C2");
  expect(reported()).toEqual([{ branch: "fix", commit: "b2", dirty: "false" }, clean]);
});

it("asks for the newest of the loops that begin while git is asked", async () => {
  const { loops, questions, items } = watched();
  const now = Date.now();
  loops.observe(loopFrame(now));
  await until(() => questions.length === 1, { message: "the first question" });
  for (const ms of [10, 20]) loops.observe(loopFrame(now + ms));
  questions.shift()?.({ ...clean, commit: "b2" });
  await until(() => questions.length === 1, { message: "the second question" });
  questions.shift()?.({ ...clean, commit: "c3" });
  await loops.idle();
  expect(questions).toEqual([]);
  const since = items.map(({ what }) => (what?.$case === "labelled" ? what.value.since : undefined));
  expect(since).toEqual([timestampOfMs(now), timestampOfMs(now + 20)]);
});

it("asks nothing about a loop that is only repeated, that ends, or of another channel", async () => {
  const { loops, questions } = watched();
  const old = loopFrame(Date.now() - 60_000);
  const { what } = loopFrame(Date.now());
  loops.observe(old);
  loops.observe(loopFrame(Date.now(), "C1", "Succeeded"));
  if (what?.$case === "frame")
    loops.observe({ ...old, what: { $case: "frame", value: { ...what.value, channel: "v2" } } });
  await loops.idle();
  expect(questions).toEqual([]);
});

it("adds nothing after its end, which does not wait for git for long", async () => {
  const { loops, questions, items } = watched();
  loops.observe(loopFrame(Date.now()));
  await until(() => questions.length === 1, { message: "the question" });
  await loops.stop(1, never);
  questions.shift()?.({ ...clean, commit: "b2" });
  await loops.idle();
  expect(items).toEqual([]);
});
