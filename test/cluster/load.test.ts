import type { LogReader } from "@tapedeck/shared/log/log";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestLog, testSources } from "@tapedeck/shared/testing/test-log";
import { expect, it } from "vitest";
import { RecordedFrames } from "./load.ts";

it("frames of a source are counted by channel, and each is read once", async () => {
  await using log = await startTestLog();
  const [source] = testSources;
  if (source === undefined) throw new Error("no source");
  const { append } = testWriter(log.writer, source);
  const frames = new RecordedFrames(source);
  let read = 0;
  const { lastMatch, history } = log.reader;
  const counting: Pick<LogReader, "lastMatch" | "history"> = {
    lastMatch,
    async *history(...request) {
      for await (const recorded of history(...request)) {
        read++;
        yield recorded;
      }
    },
  };
  await append(20, { channel: "v1" });
  expect(await frames.count(counting)).toEqual({ v1: 20, v2: 0 });
  await append(3, { channel: "v2" });
  expect(await frames.count(counting)).toEqual({ v1: 20, v2: 3 });
  expect(await frames.count(counting)).toEqual({ v1: 20, v2: 3 });
  expect(read).toBe(23);
});
