import { expect, it } from "vitest";

it("everything runs on Node 24, whatever the machine has", () => {
  expect(process.version).toMatch(/^v24\./);
});
