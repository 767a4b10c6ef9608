import { jetstreamManager } from "@nats-io/jetstream";
import { streamName, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { expect, it } from "vitest";
import { type OpenStore, openStore } from "../../store.ts";
import { openedStore } from "../../testing/opened-store.ts";
import { appendFact } from "../journal/append-fact.ts";
import { removalPace } from "../maintain/removal-pace.ts";
import { sessionErased } from "../own-facts/session-facts.ts";
import { removeErased, removeWorkspace } from "./remove.ts";

const { signal } = new AbortController();
const sourceIn = (workspace: string) =>
  sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });

it("a workspace is removed whole, also when some of it expires meanwhile", async () => {
  await using nats = await startTestNats();
  await using store = await openStore({ url: nats.url }, "test", silentLogger, signal);
  if (store === undefined) throw new Error("no store");
  const { log } = store;
  await testWriter(log.writer, sourceIn("acme")).append(3);
  await testWriter(log.writer, sourceIn("other")).append(2);
  const jsm = await jetstreamManager(store.nats);
  const stored: typeof log.stored = async function* (range, given) {
    const found = await Array.fromAsync(log.stored(range, given));
    yield* found;
    await jsm.streams.deleteMessage(streamName, found[1]?.seq ?? 0, true);
  };
  expect(await Array.fromAsync(removeWorkspace("acme", { ...store, log: { ...log, stored } }, signal))).toEqual([3]);
  expect(await log.reader.lastMatch([workspaceFilter("acme")])).toBe(0);
  expect((await jsm.streams.info(streamName)).state.messages).toBe(2);
});

/** A workspace in whose log a session of 40 messages stands before its mark. */
async function withErased(store: OpenStore): Promise<void> {
  const [source, session] = [sourceIn("acme"), "01KE3M9Z6Q4W8T2V5X7Y9A1B30"];
  await testWriter(store.log.writer, source).append(40, { session });
  await appendFact({ log: store.log, source, session, fact: sessionErased(session, []), signal });
}

it("a session that was erased while it was copied is removed without the pace of maintenance", async () => {
  const { store } = await openedStore();
  await withErased(store);
  const over = new AbortController();
  const held = removalPace.step(() => new Promise<void>((resolve) => (over.signal.onabort = () => resolve())), signal);
  try {
    await removeErased("acme", store, signal);
  } finally {
    over.abort();
    await held;
  }
  expect((await (await jetstreamManager(store.nats)).streams.info(streamName)).state.messages).toBe(1);
});

it("a removal of what was erased that is broken off is no success: the workspace stays closed", async () => {
  const { store } = await openedStore();
  await withErased(store);
  await expect(removeErased("acme", store, AbortSignal.abort())).rejects.toThrow("aborted");
});
