import { headers, type NatsConnection } from "nats";
import { afterEach, expect, it, vi } from "vitest";
import { TapedeckError } from "../errors/errors.ts";
import { startTestNats } from "../testing/nats.ts";
import { connectThroughRestarts } from "../testing/nats-connection.ts";
import { until } from "../testing/until.ts";
import { type KnownTokensOptions, knownTokens } from "./known-tokens.ts";
import { openTokenStore } from "./store.ts";
import { expiringSoon, type MadeToken, makeToken, renewedToken, type TokenRequest } from "./token.ts";

const stack = { current: new AsyncDisposableStack() };
afterEach(async () => {
  await stack.current.disposeAsync();
  stack.current = new AsyncDisposableStack();
});

const request: TokenRequest = { name: "ci", workspace: "acme", roles: ["viewer"], lifetimeMs: 3_600_000 };
const subjectOf = ({ hash }: MadeToken) => `$KV.TAPEDECK_TOKENS.${hash}`;

/** One who makes tokens, and one who asks for them, as it does it. */
async function harness(options: Partial<KnownTokensOptions> = {}) {
  const nats = stack.current.use(await startTestNats());
  const dial = async () => {
    return stack.current.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  };
  const connection = await dial();
  const store = await openTokenStore(connection);
  const made = async (more: Partial<TokenRequest> = {}) => {
    const token = makeToken({ ...request, ...more });
    await store.create(token);
    return token;
  };
  let broken = new AbortController();
  const watch = async () => {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") broken.abort();
      if (type === "reconnect") broken = new AbortController();
    }
  };
  void watch();
  const live = () => ({ connection, broken: broken.signal });
  const tokens = stack.current.use(knownTokens({ connection: live, refreshMs: 20, ...options }));
  return { nats, connection, dial, store, made, tokens };
}

/** A token of a short life that was found before its end, which takes more than one on a machine that is very slow. */
const heldFor = ({ made, tokens }: Awaited<ReturnType<typeof harness>>, lifetimeMs: number) =>
  until(
    async () => {
      const { text } = await made({ lifetimeMs });
      const { over } = await tokens.find(text);
      return { text, over };
    },
    { message: "a token to be found" },
  );

const refused = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });

it("a token is known as soon as it was created", async () => {
  const on = await harness({ refreshMs: 3_600_000 });
  for (let n = 0; n < 5; n++) {
    const { text, record } = await on.made({ name: `ci ${n}` });
    expect(await on.tokens.find(text)).toMatchObject({ record });
  }
  const { text } = makeToken(request);
  await expect(on.tokens.find(text)).rejects.toEqual(refused("unauthenticated", /token is unknown/));
});

it("a text that can't be a token is refused with what is wrong with it", async () => {
  const { tokens } = await harness();
  const { text } = makeToken(request);
  const refusals: [string, RegExp][] = [
    ["sk_live", /not a Tapedeck token: those begin with tdk_/],
    [text.slice(0, -1), /^this token is incomplete: it has 46 characters, and a token has 47$/],
    [`${text}x`, /^this token is too long: it has 48 characters/],
    [`${text.slice(0, -1)}!`, /not a Tapedeck token: it has characters/],
  ];
  for (const [wrong, message] of refusals) {
    await expect(tokens.find(wrong)).rejects.toEqual(refused("unauthenticated", message));
  }
});

it("a token is known that was created while the bucket was being read", async () => {
  const on = await harness();
  const connection = await on.dial();
  const ask = connection.request.bind(connection);
  let held: Promise<void> | undefined;
  let answers = 0;
  vi.spyOn(connection, "request").mockImplementation(async (...args) => {
    const answer = await ask(...args);
    if (held !== undefined) answers++;
    await held;
    return answer;
  });
  const broken = new AbortController().signal;
  const tokens = stack.current.use(knownTokens({ connection: () => ({ connection, broken }), refreshMs: 20 }));
  await tokens.find((await on.made()).text);

  const release = Promise.withResolvers<void>();
  held = release.promise;
  await until(() => answers > 0, { message: "a read to be under way" });
  const { text, record } = await on.made();
  const found = tokens.find(text);
  held = undefined;
  release.resolve();
  expect(await found).toMatchObject({ record });
});

it("a revoked token ends for its holders and is refused", async () => {
  const on = await harness();
  const [one, other] = [await on.made(), await on.made()];
  const [held, kept] = [await on.tokens.find(one.text), await on.tokens.find(other.text)];
  expect(await on.store.revoke(one.record.id, "globex")).toBeUndefined();
  expect(await on.store.revoke(one.record.id, "acme")).toEqual(one.record);
  await until(() => held.over.aborted, { message: "the end" });
  expect(held.over.reason).toEqual(refused("unauthenticated", /revoked/));
  expect(held.over.reason).toBeInstanceOf(TapedeckError);
  await expect(on.tokens.find(one.text)).rejects.toEqual(refused("unauthenticated", /revoked/));
  expect(kept.over.aborted).toBe(false);
  expect(await on.store.list()).toEqual([other.record]);
});

it("an expired token ends for its holders and is refused", async () => {
  const on = await harness();
  const { text, over } = await heldFor(on, 300);
  await until(() => over.aborted, { message: "the end" });
  expect(over.reason).toEqual(refused("unauthenticated", /expired/));
  await expect(on.tokens.find(text)).rejects.toEqual(refused("unauthenticated", /expired/));
});

it("while NATS is away known tokens work until they expire, others are refused, and revocations take effect afterwards", async () => {
  const reported: string[] = [];
  const on = await harness({ warn: (message) => reported.push(message) });
  const [one, other] = [await on.made(), await on.made()];
  for (const { text } of [one, other]) await on.tokens.find(text);
  const held = await on.tokens.find(other.text);
  const short = await heldFor(on, 1_500);
  await on.nats.kill();
  await until(() => reported.length === 1, { message: "it to be noticed" });
  await on.tokens.find(one.text);
  await expect(on.tokens.find(makeToken(request).text)).rejects.toEqual(refused("not_ready", /looked up/));
  await until(
    () =>
      on.tokens.find(short.text).then(
        () => false,
        () => true,
      ),
    { message: "its time to be over" },
  );
  expect(held.over.aborted).toBe(false);

  await on.nats.restart();
  const elsewhere = await openTokenStore(await on.dial());
  await elsewhere.revoke(other.record.id);
  await until(() => held.over.aborted, { message: "the revocation" });
  await on.tokens.find(one.text);
  await on.tokens.find((await on.made()).text);
  expect(reported).toHaveLength(2);
});

it("before the bucket was read for the first time every token is refused", async () => {
  const away = () => {
    throw new TapedeckError("not_ready", "away");
  };
  const tokens = stack.current.use(knownTokens({ connection: away, refreshMs: 20 }));
  await expect(tokens.find(makeToken(request).text)).rejects.toEqual(refused("not_ready", /looked up/));
});

/** A connection that can't be had until `there` is set. */
function comesLater(connection: NatsConnection) {
  const state = { requestCount: 0, there: false };
  const live = () => {
    state.requestCount++;
    if (!state.there) throw new TapedeckError("not_ready", "away");
    return { connection, broken: new AbortController().signal };
  };
  return { state, live };
}

it("a log that is not reached at once is not worth a word", async () => {
  const on = await harness();
  const { state, live } = comesLater(on.connection);
  const reported: string[] = [];
  const warn = (message: string) => reported.push(message);
  const tokens = stack.current.use(knownTokens({ connection: live, refreshMs: 20, startMs: 3_600_000, warn }));
  await until(() => state.requestCount > 2, { message: "it to be tried" });
  state.there = true;
  await tokens.find((await on.made()).text);
  const { requestCount } = state;
  await until(() => state.requestCount > requestCount + 1, { message: "further reads" });
  expect(reported).toEqual([]);
});

it("a log that is never reached is reported, and that it is there again", async () => {
  const on = await harness();
  const { state, live } = comesLater(on.connection);
  const reported: string[] = [];
  const warn = (message: string) => reported.push(message);
  stack.current.use(knownTokens({ connection: live, refreshMs: 20, startMs: 100, warn }));
  await until(() => reported.length === 1, { message: "it to be reported" });
  state.there = true;
  await until(() => reported.length === 2, { message: "the end of it" });
  expect(reported).toEqual([expect.stringContaining("can't be looked up"), "tokens can be looked up again"]);
});

it.each([
  ["nothing", ""],
  ["no JSON", "{"],
  ["no record", "{}"],
  ["a record of all workspaces", JSON.stringify({ ...makeToken(request).record, workspace: "*" })],
  ["a record that does not expire", JSON.stringify({ ...makeToken(request).record, expiresAt: null })],
  ["a record with a role that there is not", JSON.stringify({ ...makeToken(request).record, roles: ["god"] })],
])("a token whose stored value is %s is refused", async (_, value) => {
  const on = await harness();
  const token = makeToken(request);
  on.connection.publish(subjectOf(token), value);
  await on.connection.flush();
  await expect(on.tokens.find(token.text)).rejects.toEqual(refused("unauthenticated", /token is unknown/));
  expect(await on.store.list()).toEqual([]);
});

/** The ways in which an operator may remove a token with programs of NATS. */
const removals: [string, (on: { connection: NatsConnection }, token: MadeToken) => Promise<unknown>][] = [
  [
    "purged, without a trace",
    ({ connection }, token) =>
      connection.request("$JS.API.STREAM.PURGE.KV_TAPEDECK_TOKENS", JSON.stringify({ filter: subjectOf(token) }), {
        timeout: 60_000,
      }),
  ],
  [
    "rolled up",
    async ({ connection }, token) => {
      const h = headers();
      h.set("KV-Operation", "PURGE");
      h.set("Nats-Rollup", "sub");
      connection.publish(subjectOf(token), "", { headers: h });
    },
  ],
  [
    "gone with the bucket",
    ({ connection }) => connection.request("$JS.API.STREAM.DELETE.KV_TAPEDECK_TOKENS", "", { timeout: 60_000 }),
  ],
  [
    "written anew with less",
    async ({ connection }, token) => {
      const value = { ...token.record, roles: ["recorder"], developer: "alice" };
      connection.publish(subjectOf(token), JSON.stringify(value));
    },
  ],
];
it.each(removals)("a token that was %s has ended", async (_, remove) => {
  const on = await harness();
  const token = await on.made();
  const { over } = await on.tokens.find(token.text);
  await remove(on, token);
  await until(() => over.aborted, { message: "the end" });
  const after = await on.tokens.find(token.text).catch(() => undefined);
  expect(after?.record.roles.includes("viewer") ?? false).toBe(false);
  await on.tokens.find((await on.made()).text);
});

it("a token that was renewed goes on for a while, with what is under way, and is not renewed again", async () => {
  const on = await harness();
  const old = await on.made({ renewable: true, lifetimeMs: 90 * 86_400_000 });
  const held = await on.tokens.find(old.text);
  const renewal = { made: renewedToken(old.record), old: expiringSoon(old.record) };
  const made = await on.store.renew(old.hash, renewal);
  expect(made?.record).toMatchObject({ id: old.record.id, roles: ["viewer"], renewable: true });
  expect((await on.tokens.find(made?.text ?? "")).record).toEqual(made?.record);
  const now = await until(
    async () => {
      const { record } = await on.tokens.find(old.text);
      return record.expiresAt !== old.record.expiresAt && record;
    },
    { message: "the new end of the old token" },
  );
  expect(Date.parse(now.expiresAt) - Date.now()).toBeLessThanOrEqual(3_600_000);
  expect(held.over.aborted).toBe(false);
  expect(await on.store.renew(old.hash, renewal)).toBeUndefined();
  expect(await on.store.list()).toHaveLength(2);
  await on.store.revoke(old.record.id);
  expect(await on.store.list()).toEqual([]);
  for (const text of [old.text, made?.text ?? ""]) {
    await until(
      () =>
        on.tokens.find(text).then(
          () => false,
          () => true,
        ),
      { message: "the end of both" },
    );
  }
  expect(held.over.aborted).toBe(true);
});

it("the rights of a token are never changed in place: a record with other rights ends it", async () => {
  const on = await harness();
  const token = await on.made();
  const held = await on.tokens.find(token.text);
  const changed = { ...token.record, roles: ["admin"] };
  on.connection.publish(subjectOf(token), JSON.stringify(changed));
  await until(() => held.over.aborted, { message: "the end of what it was" });
});

it("a token that is revoked while it is renewed stays revoked", async () => {
  const on = await harness();
  for (let round = 0; round < 10; round += 1) {
    const old = await on.made({ renewable: true });
    const renewal = { made: renewedToken(old.record), old: expiringSoon(old.record) };
    await Promise.all([on.store.renew(old.hash, renewal), on.store.revoke(old.record.id)]);
    expect(await on.store.list()).toEqual([]);
  }
});
