import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recordings } from "@tapedeck/fakes/recordings";
import { asNow, writeEventLog } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ulid } from "ulid";
import { afterAll, expect, it } from "vitest";
import { noteOwner } from "../../spill/ownership.ts";
import { openSpill } from "../../spill/spill.ts";
import { orphanedSpills } from "../../spill/spill-folder.ts";
import { endOf } from "./event-log-offsets.ts";
import { endLeftEventLogs, leftEventLogs, takeLeftEventLogs } from "./left-event-logs.ts";
import { OwnEventLog } from "./own-event-log.ts";

const root = mkdtempSync(join(tmpdir(), "tapedeck-left-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const never = new AbortController().signal;
const fixture = recordings.skaffold;
const load = (name: string) => {
  const { v1, v2 } = asNow(loadRecording(join(fixture, name))).messages;
  return { v1: v1.map(({ bytes }) => bytes), v2: v2.map(({ bytes }) => bytes) };
};

/** A process that has ended. */
const removed = spawnSync(process.execPath, ["--version"]).pid;

function harness({ isOneProcess = true, isUsers = false } = {}) {
  const home = mkdtempSync(join(root, "home-"));
  const file = isUsers ? join(home, "own.log") : undefined;
  const begin = (project: string) => {
    const hello = { developer: "alice", project, upstream: "skaffold", redact: "on", tap: ulid(), labels: {} } as const;
    const log = new OwnEventLog({ home, file, isOneProcess, address: "127.0.0.1:1", hello, to: "here" });
    log.runs(removed);
    return log;
  };
  return { home, begin };
}

/** What each left connection has said, by the project that it is of. */
async function left(home: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { dir, hello } of await orphanedSpills(home)) {
    await using spill = await openSpill({ dir });
    const items: Item[] = [];
    const over = new AbortController();
    for await (const item of spill.read(1n, over.signal)) {
      items.push(item);
      if (item.index === spill.state().nextIndex - 1n) over.abort();
    }
    counts[hello.project] = items.filter(({ what }) => what?.$case === "frame").length;
  }
  return counts;
}

const sizeOf = ({ v1, v2 }: ReturnType<typeof load>) => v1.length + v2.length;

it.each([true, false])("a signal ends the taking, of which nothing stays (one process: %s)", async (isOneProcess) => {
  const { home, begin } = harness({ isOneProcess });
  const log = begin("shop");
  const count = 5_000;
  const line = (at: number) => {
    const timestamp = new Date(Date.now() + at).toISOString();
    return `${JSON.stringify({ timestamp, skaffoldLogEvent: { taskId: "Build-0", message: `line ${at}` } })}\n`;
  };
  appendFileSync(`${log.path}.v2`, Array.from({ length: count }, (_, at) => line(at)).join(""));
  log.leave(endOf(log.path));
  const before = readdirSync(home).sort();
  const stopping = new AbortController();
  const taking = takeLeftEventLogs(home, stopping.signal);
  while (!readdirSync(home).some((name) => name.endsWith(".claim"))) await new Promise(setImmediate);
  stopping.abort();
  await taking;
  expect(readdirSync(home).sort()).toEqual(before);

  await takeLeftEventLogs(home, never);
  expect(await left(home)).toEqual({ shop: count });
  expect(existsSync(log.path)).toBe(false);
});

it.each([true, false])("of the user's file each takes what is its own (one process: %s)", async (isOneProcess) => {
  const { home, begin } = harness({ isOneProcess, isUsers: true });
  const first = begin("first");
  const build = load("12-skaffold-build-one-shot");
  writeEventLog(first.path, build);
  // The process looks as if it had been killed: nobody has seen its end.
  for (const name of readdirSync(home).filter((one) => one.endsWith(".events.json")))
    noteOwner(join(home, name), false);
  await endLeftEventLogs(home, first.path);
  const second = begin("second");
  const run = load("12b-skaffold-run-one-shot");
  writeEventLog(second.path, run);
  second.leave(endOf(second.path));
  writeEventLog(second.path, build);
  await takeLeftEventLogs(home, never);
  expect(await left(home)).toEqual({ first: sizeOf(build), second: sizeOf(run) });
});

it("a file that can't be read stays for the next one", async () => {
  const { home, begin } = harness();
  const log = begin("shop");
  writeEventLog(log.path, load("12-skaffold-build-one-shot"));
  appendFileSync(log.path, Buffer.from([0xff, 0x0a]));
  log.leave(endOf(log.path));
  const before = readdirSync(home).sort();
  await takeLeftEventLogs(home, never);
  expect(readdirSync(home).sort()).toEqual(before);
});

it("those that wait are the ones that a killed tap left and that contain something", async () => {
  const { home, begin } = harness();
  const projects = async () => (await leftEventLogs(home)).map(({ hello }) => hello.project);
  const log = begin("shop");
  begin("empty").leave(endOf(join(home, "nothing")));
  writeEventLog(log.path, load("12-skaffold-build-one-shot"));
  expect(await projects(), "while its tap lives").toEqual([]);
  log.leave(endOf(log.path));
  expect(await projects()).toEqual(["shop"]);
  await takeLeftEventLogs(home, never);
  expect(await projects()).toEqual([]);
});
