import { expect, it } from "vitest";
import { queryClient } from "./testing/client.ts";
import { scenario } from "./testing/scenario.ts";
import { reaches, stage } from "./testing/stage.ts";

it("limits that are larger than Postgres takes do not keep query from answering", async () => {
  await using on = await stage();
  const alice = scenario();
  alice.session("A1").started();
  const last = (await on.write(alice.events)).at(-1) ?? 0;
  const yearMs = 365 * 86_400_000;
  const readers = {
    connections: 2 ** 40,
    tempBytes: 2 ** 50,
    statementMs: yearMs,
    idleTransactionMs: yearMs,
    transactionMs: yearMs,
    lockMs: yearMs,
  };
  await using query = await on.startQuery({ timeoutMs: yearMs, readers });
  await reaches(query, last);
  using ask = queryClient(query.address);
  expect((await ask.listSources()).items).toHaveLength(1);
});
