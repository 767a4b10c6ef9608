import { expect, it } from "vitest";
import { silentLogger } from "../../service/logger.ts";
import { connectNats } from "../../service/nats.ts";
import { lossyProxy } from "../../testing/lossy-proxy.ts";
import { startTestNats } from "../../testing/nats.ts";
import { until } from "../../testing/until.ts";
import { watchErasedSessions } from "./erased-sessions.ts";
import { ErasureStore, openErasures } from "./erasure-store.ts";

it("an erasure that ends while its end can't be heard is forgotten when the connection is back", async () => {
  await using server = await startTestNats();
  await using way = await lossyProxy(server.port);
  const own = await connectNats("own", { url: `127.0.0.1:${way.port}` }, silentLogger);
  const other = await connectNats("other", { url: server.url }, silentLogger);
  const store = new ErasureStore(other);
  const erasure = await store.begin({
    session: "s1",
    source: "acme/alice/shop/skaffold",
    epoch: "e",
    lastSeq: 5,
    removedSeq: 0,
    removed: 0,
    state: "removing",
    began: "2026-11-20T09:00:00Z",
    who: "alice",
    kind: "person",
  });
  await using erased = await watchErasedSessions(own, () => {});
  expect(erased.has("s1", 5)).toBe(true);

  way.deaf = true;
  const received = other.subscribe(openErasures, { max: 1 });
  await store.end(erasure);
  for await (const _ of received) break;
  way.deaf = false;
  way.cut();
  await until(() => erased.isEmpty, { message: "the session to be forgotten" });
  await Promise.all([own.close(), other.close()]);
});
