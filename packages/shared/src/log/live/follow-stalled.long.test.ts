import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import type { SourceName } from "../../source.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { incompressible, testWriter } from "../../testing/log-messages.ts";
import { startTestLog, testSources } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { logStart, offsetOf } from "../offset.ts";

const sources = testSources;
const alice = sources[0] as SourceName;

it("readers that stop reading block nobody, hold nothing, and miss nothing", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  await using log = await startTestLog({
    historyReaders: new Semaphore(2),
    ring: { entries: 64, bytes: 4 * 1024 * 1024 },
  });
  const writer = testWriter(log.writer, alice);
  const large = incompressible(16 * 1024);
  const abort = new AbortController();
  const subscribe = () => log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: abort.signal });
  // Half of them stop in the live tail, half in the middle of history.
  const live = Array.from({ length: 20 }, subscribe);
  const first = live.map((events) => events.next());
  await writer.append(1);
  for (const next of first) expect((await next).value?.offset).toBe(offsetOf(1));
  await writer.append(200, large);
  collectGarbage();
  const bytes = () => process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
  const before = bytes();
  const behind = Array.from({ length: 20 }, subscribe);
  for (const events of behind) expect((await events.next()).value?.offset).toBe(offsetOf(1));
  for (let i = 0; i < 19; i++) await writer.append(200, large);
  const total = 4_001; // 62 MiB

  // Others read past them, with fewer turns than there are stalled ones.
  let seen = 0;
  for await (const _ of subscribe()) if (++seen === total) break;
  const grown = () => {
    collectGarbage();
    return bytes() - before;
  };
  await until(() => grown() < 16 * 1024 * 1024, { message: "the memory to be as before" });

  for (const late of [live[0], behind[0]]) {
    for (let seq = 2; seq <= total; seq++) expect((await late?.next())?.value?.offset).toBe(offsetOf(seq));
  }
  abort.abort();
});
