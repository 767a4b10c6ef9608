import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import { streamName } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { headers } from "nats";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import type { OpenStore } from "../../store.ts";
import { openedStore } from "../../testing/opened-store.ts";
import { LostRaceError } from "../journal/settle.ts";
import { openSourceJournal, type SourceJournal } from "../journal/source-journal.ts";
import { sourceCheckpoint } from "../own-facts/source-facts.ts";
import { fenceSources } from "./fence.ts";
import { type MoveMarks, WorkspaceMovedError } from "./move-marks.ts";

const { signal } = new AbortController();
let store: OpenStore;
let marks: MoveMarks;
beforeEach(async () => {
  ({ store, marks } = await openedStore());
});

const source = (project: string, workspace = "acme") =>
  sourceName({ workspace, developer: "alice", project, upstream: "skaffold" });

async function open(name: SourceName): Promise<SourceJournal> {
  const unused = { hello: Hello.create({}), onAcknowledged: () => {}, onPublishFailure: () => {} };
  const journal = await openSourceJournal({ log: store.log, source: name, signal, ...unused });
  onTestFinished(() => journal[Symbol.asyncDispose]());
  return journal;
}

const write = (journal: SourceJournal) =>
  journal.writer.reached(journal.publish([journal.own("", sourceCheckpoint(), timestampNow())]));

async function leave(workspace = "acme"): Promise<void> {
  await marks.set(workspace, { state: "leaving", other: "two" }, await marks.of(workspace));
}

it("a writer that is at work ends at the fence, and no other begins", async () => {
  const journal = await open(source("shop"));
  await write(journal);
  await leave();
  // The mark alone ends nobody.
  await write(journal);
  await fenceSources("acme", store, signal);
  await expect(write(journal)).rejects.toBeInstanceOf(LostRaceError);
  await expect(open(source("shop"))).rejects.toBeInstanceOf(WorkspaceMovedError);
  await expect(open(source("new"))).rejects.toBeInstanceOf(WorkspaceMovedError);
  await write(await open(source("shop", "other")));
});

it("the first message of a source that lands behind the fence is not reported, and no second follows", async () => {
  const journal = await open(source("new"));
  await leave();
  await fenceSources("acme", store, signal);
  await expect(write(journal)).rejects.toBeInstanceOf(WorkspaceMovedError);
  await expect(write(journal)).rejects.toBeInstanceOf(WorkspaceMovedError);
  expect((await store.log.writer.lastOf(source("new")))?.mark.cursor.ordinals).toEqual({ tapedeck: 1 });
});

it("a source that is written to without pause is fenced all the same", async () => {
  const journal = await open(source("busy"));
  await write(journal);
  let isOver = false;
  const writing = (async () => {
    try {
      for (;;) await write(journal);
    } catch (cause) {
      isOver = true;
      return cause;
    }
  })();
  await leave();
  await fenceSources("acme", store, signal);
  expect(await writing).toBeInstanceOf(LostRaceError);
  expect(isOver).toBe(true);
});

it("a log that is full can't be fenced, and says how to go on", async () => {
  await write(await open(source("shop")));
  await leave();
  const jsm = await jetstreamManager(store.nats);
  const { state } = await jsm.streams.info(streamName);
  await jsm.streams.update(streamName, { max_msgs: state.messages, discard: "new" });
  await expect(fenceSources("acme", store, signal)).rejects.toMatchObject({
    code: "not_ready",
    message: expect.stringMatching(/maximum messages exceeded.*closed.*nats kv del TAPEDECK_MOVES acme/),
  });
  await jsm.streams.update(streamName, { max_msgs: -1 });
  await fenceSources("acme", store, signal);
});

it("a workspace that has arrived, or never moved, is open", async () => {
  await marks.assertOpen("acme");
  await marks.set("acme", { state: "arriving", other: "home" }, await marks.of("acme"));
  await expect(open(source("shop"))).rejects.toThrow('is being moved here from the shard "home"');
  await marks.set("acme", { state: "arrived", other: "home" }, await marks.of("acme"));
  await write(await open(source("shop")));
  expect(await marks.closed()).toEqual(new Set());
});

it("a workspace is open again when an operator has deleted the mark", async () => {
  await leave();
  await expect(open(source("shop"))).rejects.toBeInstanceOf(WorkspaceMovedError);
  // The same as `nats kv del`.
  const h = headers();
  h.set("KV-Operation", "DEL");
  await jetstream(store.nats).publish("$KV.TAPEDECK_MOVES.acme", "", { headers: h });
  await write(await open(source("shop")));
  expect(await marks.closed()).toEqual(new Set());
  await leave();
  await expect(marks.assertOpen("acme")).rejects.toBeInstanceOf(WorkspaceMovedError);
});

it("a mark that was changed meanwhile is not overwritten", async () => {
  const read = await marks.of("acme");
  await marks.set("acme", { state: "leaving", other: "two" }, read);
  await expect(marks.set("acme", { state: "leaving", other: "three" }, read)).rejects.toThrow("another move");
});
