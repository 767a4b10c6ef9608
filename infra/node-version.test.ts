import { expect, test } from "vitest";

test("everything runs on Node 24, whatever the machine has", () => {
  expect(process.version).toMatch(/^v24\./);
});
