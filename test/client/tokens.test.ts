import type { WebSocketClass } from "@tapedeck/client";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect as connectNats } from "nats";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket as WsWebSocket } from "ws";
import { following, impatientClient } from "./following.ts";
import { type LiveHarness, startLiveHarness } from "./live-harness.ts";

const cleanup = new AsyncDisposableStack();
const limits = { perSecond: 20, connections: 2 };
let harness: LiveHarness;
let tokens: TokenStore;

beforeAll(async () => {
  harness = cleanup.use(
    await startLiveHarness({
      TAPEDECK_AUTH: "tokens",
      TAPEDECK_LIMITS_REQUESTS_PER_SECOND: String(limits.perSecond),
      TAPEDECK_LIMITS_CONNECTIONS: String(limits.connections),
    }),
  );
  const nats = cleanup.adopt(await connectNats({ servers: harness.seeded.stack.parts.nats.url }), (nc) => nc.close());
  tokens = await openTokenStore(nats);
  await harness.writer("alice").builds(3);
  await harness.seeded.stack.caughtUp();
});
afterAll(() => cleanup.disposeAsync());

async function tokenFor(...roles: readonly Role[]) {
  const developer = roles.includes("recorder") ? { developer: "alice" } : {};
  const made = makeToken({
    name: roles.join(),
    workspace: "acme",
    roles: [...roles],
    lifetimeMs: 3_600_000,
    ...developer,
  });
  await tokens.create(made);
  return { token: made.text, id: made.record.id };
}

const builds = { kinds: ["build.*"], after: "start" } as const;

it.each([
  ["the runtime's own", undefined],
  ["that of ws", WsWebSocket as WebSocketClass],
])("a viewer's token may read, list and fetch state, with the WebSocket %s", async (_, WebSocket) => {
  const { token } = await tokenFor("viewer");
  using tapedeck = impatientClient({ url: harness.url, token, ...(WebSocket && { WebSocket }) });
  const reading = following(tapedeck.events(builds));
  await until(() => reading.got.length === 3, { message: "the builds" });
  expect((await tapedeck.state("alice/shop")).source).toBe("acme/alice/shop/skaffold");
  const sources = following(tapedeck.sources());
  await sources.ended;
  expect(sources.got).toHaveLength(1);
});

it("a missing, invalid or insufficient token is reported, although a socket does not say so", async () => {
  const { token: recorder } = await tokenFor("recorder");
  for (const [token, code] of [
    [undefined, "unauthenticated"],
    [`tdk_${"a".repeat(43)}`, "unauthenticated"],
    [recorder, "forbidden"],
  ] as const) {
    using tapedeck = impatientClient({ url: harness.url, ...(token !== undefined && { token }) });
    await expect(following(tapedeck.events()).ended).rejects.toMatchObject({ code });
    await expect(tapedeck.state("alice/shop")).rejects.toMatchObject({ code });
  }
});

it("a reader gets an error when its token is revoked", async () => {
  const { token, id } = await tokenFor("viewer");
  using tapedeck = impatientClient({ url: harness.url, token });
  const all = [following(tapedeck.subscribe()), following(tapedeck.events(builds))];
  await until(() => all.every(({ got }) => got.length > 0), { message: "it to read" });
  await tokens.revoke(id);
  for (const { ended } of all) await expect(ended).rejects.toMatchObject({ code: "unauthenticated" });
});

it("a client over its request rate waits, and gets everything in the end", async () => {
  const { token } = await tokenFor("viewer");
  using tapedeck = impatientClient({ url: harness.url, token });
  const all = Array.from({ length: 2 * limits.perSecond }, () => following(tapedeck.events(builds)));
  await until(() => all.every(({ got }) => got.length === 3), { message: "all to have the builds" });
});

it("a client over its token's connection limit gets an error", async () => {
  const { token } = await tokenFor("viewer");
  using tapedeck = stackOf(limits.connections, token);
  await until(() => tapedeck.all.every(({ got }) => got.length === 3), { message: "as many as may be" });
  using more = impatientClient({ url: harness.url, token });
  await expect(following(more.events(builds)).ended).rejects.toMatchObject({ code: "limit_exceeded" });
});

/** Opens clients, each with its own socket. */
function stackOf(count: number, token: string) {
  const cleanup = new DisposableStack();
  const all = Array.from({ length: count }, () =>
    following(cleanup.use(impatientClient({ url: harness.url, token })).events(builds)),
  );
  return { all, [Symbol.dispose]: () => cleanup.dispose() };
}
