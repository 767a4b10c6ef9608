import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

it("limits that are longer than a timer of Node takes do not end what they bound", async () => {
  const limits = ["ARRIVAL", "QUERY", "SQL_STATEMENT", "SQL_IDLE_TRANSACTION", "SQL_TRANSACTION", "SQL_LOCK"];
  await using stack = await startStack({
    env: Object.fromEntries(limits.map((limit) => [`TAPEDECK_LIMITS_${limit}`, "30d"])),
  });
  await stack.caughtUp();
  expect(await stack.httpCall("GET", "/api/v1/sources")).toMatchObject({ status: 200 });
});
