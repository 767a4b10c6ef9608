import { scenario } from "@tapedeck/query/testing/scenario";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore, type TokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { transports } from "./all-transports.ts";
import { readUntil, refusalOf } from "./reading.ts";
import { type Endpoint, type Message, Refused, type Transport } from "./transport.ts";

// The right to subscribe is the same on every transport.

const cleanup = new AsyncDisposableStack();
const maxConnections = 3;
let on: SeededStack;
let tokens: TokenStore;
let endpoint: Endpoint;

beforeAll(async () => {
  const env = { TAPEDECK_AUTH: "tokens", TAPEDECK_LIMITS_CONNECTIONS: String(maxConnections) };
  on = cleanup.use(await startSeededStack(env));
  endpoint = { grpc: on.stack.grpc, http: on.stack.http };
  const connection = cleanup.adopt(await connect({ servers: on.stack.parts.nats.url }), (nc) => nc.close());
  tokens = await openTokenStore(connection);
  const alice = scenario();
  alice.session("01A1").started();
  await on.seed(alice.events);
});
afterAll(() => cleanup.disposeAsync());

async function tokenFor(roles: readonly Role[], { workspace = "acme", lifetimeMs = 3_600_000 } = {}) {
  const developer = roles.includes("recorder") ? { developer: "alice" } : {};
  const made = makeToken({ name: roles.join(), workspace, roles: [...roles], lifetimeMs, ...developer });
  await tokens.create(made);
  return { token: made.text, id: made.record.id };
}

const statusOf = ({ name }: Transport, grpc: number, http: number) => ({ status: name === "gRPC" ? grpc : http });
const isCaughtUp = ({ type }: Message) => type === "caught_up";

describe.each(transports)("over $name", (transport) => {
  const refusedWith = (token?: string) =>
    refusalOf(transport, { ...endpoint, ...(token !== undefined && { token }) }, { after: "start" });

  it.each<Role>(["viewer", "controller", "admin"])("%s may read", async (role) => {
    const { token } = await tokenFor([role]);
    const messages = await readUntil(transport, { ...endpoint, token }, { after: "start" }, isCaughtUp);
    expect(messages.length).toBeGreaterThan(1);
  });

  it("a client without a token or with an invalid one is refused", async () => {
    const expected = { code: "unauthenticated", ...statusOf(transport, 16, 401) };
    expect(await refusedWith()).toMatchObject(expected);
    expect(await refusedWith(`tdk_${"a".repeat(43)}`)).toMatchObject(expected);
    expect(await refusedWith("admin")).toMatchObject(expected);
  });

  it("a recorder may push and not read", async () => {
    const { token } = await tokenFor(["recorder"]);
    expect(await refusedWith(token)).toMatchObject({ code: "forbidden", ...statusOf(transport, 7, 403) });
  });

  it("a token of another workspace can read nothing", async () => {
    const { token } = await tokenFor(["admin"], { workspace: "globex" });
    const messages = await readUntil(transport, { ...endpoint, token }, { after: "start" }, isCaughtUp);
    expect(messages.filter(({ type }) => type === "event")).toEqual([]);
  });

  it.each(["revoked", "expired"])("a reader gets an error when the token is %s", async (how) => {
    const { token, id } = await tokenFor(["viewer"], how === "expired" ? { lifetimeMs: 1_500 } : {});
    const reading = readUntil(transport, { ...endpoint, token }, {}, (message) => {
      if (isCaughtUp(message) && how === "revoked") void tokens.revoke(id);
      return false;
    });
    const refusal = await reading.then(
      () => undefined,
      (error: unknown) => (error instanceof Refused ? error.body : error),
    );
    expect(refusal).toMatchObject({ code: "unauthenticated" });
    expect(await refusedWith(token)).toMatchObject({ code: "unauthenticated" });
  });

  it("a token has a limit of connections, and one that ends makes room", async () => {
    const { token } = await tokenFor(["viewer"]);
    const over = Array.from({ length: maxConnections }, () => new AbortController());
    const open = async (signal: AbortSignal) => {
      const messages = transport.read({ ...endpoint, token }, { after: "start" }, signal);
      await messages.next();
      return messages;
    };
    const held = await Promise.all(over.map(({ signal }) => open(signal)));
    // A WebSocket is opened and gets the error as a message: a browser could not see why it was not opened.
    // EventSource gets a time to retry.
    const isInWords = transport.name === "WebSocket" || transport.name === "server-sent events";
    const status = isInWords ? {} : statusOf(transport, 8, 429);
    expect(await refusedWith(token)).toMatchObject({ code: "limit_exceeded", ...status });
    over[0]?.abort();
    await held[0]?.return();
    const isLetIn = () => readUntil(transport, { ...endpoint, token }, { after: "start" }, isCaughtUp);
    await until(isLetIn, { message: "the place that was left" });
    for (const one of over) one.abort();
    await Promise.all(held.map((one) => one.return()));
  });
});
