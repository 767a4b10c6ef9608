import { expect, it } from "vitest";
import { causeReader } from "./causes.ts";

it("a message waits no longer for its cause when the log's clock is ahead", async () => {
  const causeOf = causeReader({ listOperations: async () => ({ items: [], position: "" }) as never });
  const operation = { workspace: "default", session: "s", kind: "loop", runner: 1, loop: 1, position: "" };
  // A delay of an hour would end this test.
  expect(await causeOf({ ...operation, recordedAt: Date.now() + 3_600_000 }, new AbortController().signal)).toBe(
    undefined,
  );
});
