import { scenario } from "@tapedeck/query/testing/scenario";
import { sourceName } from "@tapedeck/shared/source";
import { exportFrom } from "tapedeck/api/exported-sessions";
import { expect, it } from "vitest";
import { startSeededStack } from "./seeded-stack.ts";

it("a period of more sessions than a page holds is exported whole", async () => {
  await using seeded = await startSeededStack();
  const alice = scenario(sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" }));
  const names = Array.from({ length: 1_003 }, (_, index) => `01A${String(index).padStart(4, "0")}`);
  for (const name of names) alice.session(name).started();
  await seeded.seed(alice.events);
  using from = exportFrom({
    address: seeded.stack.grpc,
    isTls: false,
    metadata: {},
    options: {},
    name: seeded.stack.grpc,
  });
  const found = await from.find([], "alice/shop", { since: "2020-01-01T00:00:00Z" });
  expect(found.sessions.map(({ session }) => session)).toEqual(names);
});
