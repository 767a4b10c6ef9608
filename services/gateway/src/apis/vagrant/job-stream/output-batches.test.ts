import type { Recorded } from "@tapedeck/shared/log/log";
import { expect, it } from "vitest";
import { type Following, withPauses } from "./output-batches.ts";

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;

it("a pause that something came in is over: none is left for each event", async () => {
  const before = timers();
  const over = new AbortController();
  const following: Following = async function* ({ reached }) {
    for (let seq = 1; ; seq++) {
      reached();
      await new Promise(setImmediate);
      await new Promise(setImmediate);
      yield { seq } as Recorded;
    }
  };
  let most = 0;
  for await (const recorded of withPauses(following, over.signal, () => 3_600_000)) {
    most = Math.max(most, timers() - before);
    if (recorded?.seq === 100) break;
  }
  expect(most).toBeLessThan(5);
  over.abort();
});
