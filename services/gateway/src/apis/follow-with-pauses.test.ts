import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { expect, it } from "vitest";
import { followWithPauses, type OpenReader } from "./follow-with-pauses.ts";

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

it("leaves no timer behind for the events that arrive in a pause", async () => {
  const before = timers();
  const over = new AbortController();
  const openReader: OpenReader = async function* ({ reached }) {
    for (let seq = 1; ; seq++) {
      reached();
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      yield { offset: offsetOf(seq) } as RecordedEvent;
    }
  };
  let max = 0;
  for await (const recorded of followWithPauses(openReader, over.signal, () => 3_600_000)) {
    max = Math.max(max, timers() - before);
    if (recorded?.offset === offsetOf(100)) break;
  }
  expect(max).toBeLessThan(5);
  over.abort();
});
