import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { queryClient } from "../testing/client.ts";
import { stage } from "../testing/stage.ts";

it("a Postgres that answers nothing is away by its name: for calls, the readiness and the metrics", async () => {
  await using stack = new AsyncDisposableStack();
  const on = stack.use(await stage());
  const url = new URL(on.databaseUrl);
  const proxy = stack.use(await lossyProxy(Number(url.port)));
  url.port = String(proxy.port);
  const query = stack.use(await on.startQuery({ databaseUrl: url.href, timeoutMs: 1_000 }));
  const ask = stack.use(queryClient(query.address));
  await until(async () => (await ask.listSources()).position !== "", { message: "the tables" });

  proxy.deaf = true;
  const refused = await ask.listSources().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(TapedeckError);
  expect(refused).toMatchObject({ code: "not_ready", message: expect.stringContaining("Postgres") });

  const about = async (path: string) => {
    const answer = await fetch(`http://${query.addresses.health}${path}`, { signal: AbortSignal.timeout(60_000) });
    return `${answer.status} ${await answer.text()}`;
  };
  const [ready, metrics] = await Promise.all([about("/readyz"), about("/metrics")]);
  expect(ready).toMatch(/^503 .*"database":"Postgres does not answer"/);
  expect(metrics).toMatch(/^tapedeck_ready\{.*check="database".*\} 0$/m);

  proxy.deaf = false;
  proxy.cut();
  await until(() => ask.listSources(), { message: "answers again" });
});
