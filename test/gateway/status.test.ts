import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings/skaffold");

it("the status says how large the log is, how it grew, and what waits in the taps of configured sources", async () => {
  const fake = await startFakeSkaffold({ recording: loadRecording(join(recordings, "20-old-v1.39.18")) });
  await using cleanup = new AsyncDisposableStack();
  cleanup.use(fake);
  const stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }] }));
  await stack.connected();
  await fake.play();
  await stack.drained(fake);
  const { log, waiting } = await until(
    async () => {
      const { status, body } = await stack.httpCall("GET", "/api/v1/status");
      const answer = JSON.parse(body);
      const isWaiting = answer.waiting.some(({ items }: { items: number }) => items > 0);
      return status === 200 && answer.behindMessages === 0 && !isWaiting && answer;
    },
    { message: "nothing to wait any more" },
  );
  expect(log.messages).toBeGreaterThan(0);
  expect(log.lastDay).toEqual({ messages: log.messages, bytes: log.bytes });
  const source = "default/alice/shop/skaffold";
  expect(waiting).toEqual([{ source, items: 0, bytes: expect.any(Number), dropped: 0 }]);
});
