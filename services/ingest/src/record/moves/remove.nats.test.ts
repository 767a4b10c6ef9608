import { jetstreamManager } from "@nats-io/jetstream";
import { streamName, workspaceFilter } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { expect, test } from "vitest";
import { openStore } from "../../store.ts";
import { removeWorkspace } from "./remove.ts";

const { signal } = new AbortController();
const sourceIn = (workspace: string) =>
  sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });

test("a workspace is removed whole, also when some of it expires meanwhile", async () => {
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
