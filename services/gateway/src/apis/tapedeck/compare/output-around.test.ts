import type { EventJson } from "@tapedeck/shared/events/json";
import { expect, it } from "vitest";
import { outputAround } from "./output-around.ts";

it("finds the cause in a line that quotes it", () => {
  const text = 'building\n - stderr: "no artifact \\"web\\"\\n"\nstopped\n';
  const written = [{ position: "p", channel: "logs", detail: { text } } as unknown as EventJson];
  expect(outputAround(written, 'no artifact "web"').map(({ isCause }) => isCause)).toEqual([false, true, false]);
});
