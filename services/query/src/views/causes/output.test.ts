import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { expect, it } from "vitest";
import { isPrintedBy } from "./output.ts";

const printed = (text: string, task: string) =>
  ({
    event: {
      kind: "log.written",
      channel: "v2",
      detail: {
        $case: "text",
        value: { text, task, subtask: "-1", pod: "", container: "", noise: false, level: "standard" },
      },
    },
  }) as unknown as RecordedEvent;

it("gives a verify test what its own container wrote, which Skaffold prints after the task", () => {
  const verify = { kind: "verify", subject: "api-check", instance: "", runner: 1, loop: 0 };
  const isOwn = (text: string, task: string) => isPrintedBy(printed(text, task), verify);
  expect(isOwn("[api-check] FAIL GET /cart: 502\n", "DevLoop-0")).toBe(true);
  expect(isOwn("[smoke] fine\n", "DevLoop-0")).toBe(false);
  expect(isOwn("1 error(s) occurred:\n", "Verify-0")).toBe(true);
  expect(isOwn("[api-check] compiled\n", "Build-0")).toBe(false);
});
