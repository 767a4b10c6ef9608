import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { type FakeSkaffold, startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import { migrated } from "@tapedeck/query/testing/migrated";
import { scenario, write } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import {
  defaultQuery,
  type QueryMap,
  QueryMapStore,
  queriesOf,
  queryMapSubject,
  watchQueryMap,
} from "@tapedeck/shared/log/queries/query-map";
import { adoptSubject, eventSubject, streamOf } from "@tapedeck/shared/log/subjects";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats } from "@tapedeck/shared/service/nats";
import { sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { newEvent } from "@tapedeck/shared/testing/log-messages";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import type { NatsConnection } from "nats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";
import { bearing } from "../stack/token-stack.ts";
import { type ConfiguredNats, startConfiguredNats } from "./configured-nats.ts";
import {
  connectAs,
  loginOf,
  type NatsUser,
  natsUsers,
  passwordsEnv,
  readUsers,
  startNatsWithUsers,
  usersFile,
  violations,
} from "./nats-users.ts";

const recording = loadRecording(
  join(import.meta.dirname, "../../packages/fakes/recordings/skaffold/01-dev-success-3-artifacts-5-iterations"),
);
const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let nats: ConfiguredNats;
let fake: FakeSkaffold;
let stack: Stack;
let token: string;

/** All services with a separate user each, and a recorded Skaffold. */
beforeAll(async () => {
  nats = cleanup.use(await startNatsWithUsers());
  const { url: database } = cleanup.use(await freshDatabase(migrated));
  fake = cleanup.use(await startFakeSkaffold({ recording }));
  stack = cleanup.use(
    await startStack({
      skaffold: [{ address: fake.address, redact: "off" }],
      servers: { nats, database },
      env: { TAPEDECK_AUTH: "tokens", TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1" },
      envOf: { ingest: loginOf("ingest"), query: loginOf("query"), gateway: loginOf("gateway") },
      connect: () => connectAs("cli", nats),
    }),
  );
  const connection = cleanup.adopt(await connectAs("cli", nats), (nc) => nc.close());
  const wish = { name: "operator", workspace: "default", roles: ["admin" as const] };
  const made = makeToken({ ...wish, everywhere: true, lifetimeMs: 3_600_000 });
  await (await openTokenStore(connection)).create(made);
  token = made.text;
  await fake.play();
  await stack.drained({ address: fake.address, said: fake.said });
});

const call = (method: string, path: string, body?: string) => stack.httpCall(method, path, bearing(token), body);

describe("every service works whole with its user", () => {
  it("the events of Skaffold are in the log and in the tables, and the gateway serves them", async () => {
    const events = await stack.events();
    expect(events.filter(({ event }) => event.channel === "v1" && event.part === 0)).toHaveLength(fake.said.v1);
    const { items } = JSON.parse((await call("GET", "/api/v1/operations?kind=build")).body);
    expect(items.length).toBeGreaterThan(5);
    const page = JSON.parse((await call("GET", "/api/v1/events?last=3")).body);
    expect(page.items).toHaveLength(3);
    expect(JSON.parse((await call("GET", "/readyz")).body)).toMatchObject({ ready: true });
  });

  it("a control call reaches Skaffold, and its answer comes back", async () => {
    const before = fake.calls.length;
    expect(await call("PUT", "/v2/build/auto_execute", '{"enabled":false}')).toMatchObject({ status: 200 });
    expect(fake.calls.slice(before)).toHaveLength(1);
  });

  it("query may ask ingest to adopt what an upstream answers about itself", async () => {
    const [ingest, query] = await Promise.all([connectAs("ingest", nats), connectAs("query", nats)]);
    await using _ = closing(ingest, query);
    const adopted: string[] = [];
    ingest.subscribe("tapedeck.adopt.>", { callback: (_error, { subject }) => void adopted.push(subject) });
    await ingest.flush();
    query.publish(adoptSubject(stack.source), Observed.encode(Observed.fromPartial({})).finish());
    await until(() => adopted.length > 0, { message: "ingest to be asked" });
  });

  it("tokens are made and revoked", async () => {
    const wish = { name: "reader", roles: ["viewer"], expires: "1h" };
    const made = await call("POST", "/api/v1/tokens", JSON.stringify(wish));
    expect(made.status).toBe(201);
    const { id, token: text } = JSON.parse(made.body);
    expect(await stack.httpCall("GET", "/api/v1/sources", bearing(text))).toMatchObject({ status: 200 });
    expect((await call("DELETE", `/api/v1/tokens/${id}`)).status).toBeLessThan(300);
    await until(async () => (await stack.httpCall("GET", "/api/v1/sources", bearing(text))).status === 401, {
      message: "the token to be refused",
    });
  });

  it("a sink is added, delivers, and is removed", async () => {
    await using receiver = await startReceiver();
    const body = { name: "hook", target: receiver.url, start: "start", filter: { kinds: ["build.*"] } };
    expect((await call("POST", "/api/v1/sinks", JSON.stringify(body))).status).toBe(201);
    await until(() => receiver.accepted.length > 5, { message: "events" });
    expect(await call("POST", "/api/v1/sinks/hook/pause")).toMatchObject({ status: 200 });
    expect((await call("DELETE", "/api/v1/sinks/hook")).status).toBe(200);
  });

  it("a rebuild, a backup and an erasure work", async () => {
    expect((await call("POST", "/api/v1/rebuild")).body).toContain("complete");
    expect((await call("GET", "/api/v1/backup")).body).toContain(streamOf("default"));
    await fake.end("graceful");
    await stack.sessionEnded();
    const session = (await stack.events()).find(({ event }) => event.kind === "session.started")?.event.session ?? "";
    expect((await call("DELETE", `/api/v1/sessions/${session}`)).body).toContain("complete");
    const source = sourceName({ workspace: "default", developer: "bob", project: "shop", upstream: "skaffold" });
    const bobs = scenario(source);
    bobs.add({ kind: "source.added" });
    const nc = await connectAs("ingest", nats);
    await using _ = closing(nc);
    await using log = await openLog(nc, { workspace: "default" });
    await write(log, bobs.events);
    expect((await call("DELETE", "/api/v1/developers/bob")).body).toContain("complete");
  });

  it("workspaces are listed, kept for as long as an admin says, and removed", async () => {
    const nc = await connectAs("ingest", nats);
    await using _ = closing(nc);
    await using log = await openLog(nc, { workspace: "over" });
    const source = sourceName({ workspace: "over", developer: "bob", project: "shop", upstream: "skaffold" });
    const bobs = scenario(source);
    bobs.add({ kind: "source.added" });
    await write(log, bobs.events);
    const retention = await call("POST", "/api/v1/workspaces/over/retention", '{"text":"14d"}');
    expect(JSON.parse(retention.body)).toMatchObject({ textSeconds: 1_209_600 });
    const { items } = JSON.parse((await call("GET", "/api/v1/workspaces")).body);
    expect(items).toMatchObject([{ workspace: "default" }, { workspace: "over", messages: 1 }]);
    expect((await call("DELETE", "/api/v1/workspaces/over")).body).toContain("complete");
    const { body } = await call("GET", "/metrics");
    expect(body).toMatch(/^tapedeck_gateway_workspace_messages\{workspace="default"/m);
  });

  it("a query may write which workspaces it has, and the others learn of it", async () => {
    const [query, gateway, ingest] = await Promise.all(
      (["query", "gateway", "ingest"] as const).map((user) => connectAs(user, nats)),
    );
    if (query === undefined || gateway === undefined || ingest === undefined) throw new Error("not connected");
    await using _ = closing(query, gateway, ingest);
    let known: QueryMap = new Map();
    const found = (map: QueryMap) => {
      known = map;
    };
    using watch = watchQueryMap(gateway, found, { aloneMs: 600_000, inClusterMs: 600_000 });
    await watch.loaded;
    const entry = { at: "10.0.0.3:7053", also: [defaultQuery], offered: false };
    await new QueryMapStore(query).change("acme", () => entry);
    await until(() => known.has("acme"), { message: "the gateway to hear of it" });
    expect(queriesOf(await new QueryMapStore(ingest).read(), "acme")).toEqual(entry);
  });

  it("the audit log has what was done", async () => {
    const actions = async () => {
      const { status, body } = await call("GET", "/api/v1/audit");
      expect(status).toBe(200);
      return body;
    };
    await until(async () => (await actions()).includes("session.erased"), { message: "the erasure to be in it" });
    expect(await actions()).toContain("token.created");
  });

  it("nothing of all of this was refused", async () => {
    expect(await violations(nats)).toEqual([]);
  });
});

it("a service that starts before ingest waits for the log, which ingest creates", async () => {
  await using fresh = await startNatsWithUsers();
  const [query, ingest] = await Promise.all([connectAs("query", fresh), connectAs("ingest", fresh)]);
  await using _ = closing(query, ingest);
  await expect(openLog(query, { workspace: "default" })).rejects.toMatchObject({ name: "LogMissingError" });
  await using made = await openLog(ingest, { workspace: "default" });
  await using found = await openLog(query, { workspace: "default" });
  expect(found.epoch).toBe(made.epoch);
});

it("a message that a user may not write is refused at once, with NATS's reason", async () => {
  await using own = await startNatsWithUsers();
  const [query, ingest] = [await connectAs("query", own), await connectAs("ingest", own)];
  await using _ = closing(query, ingest);
  await using _made = await openLog(ingest, { workspace: "default" });
  // Longer than this test may take.
  await using found = await openLog(query, { workspace: "default", timeoutMs: 600_000 });
  const source = sourceName({ workspace: "default", developer: "alice", project: "shop", upstream: "skaffold" });
  const { outcome, ...refusal } = await found.writer.publish(source, "w1", [newEvent(source, 1)], 0);
  expect(outcome).toBe("unknown");
  expect(String("cause" in refusal && refusal.cause)).toContain("Permissions Violation");
});

it("an operator's user, once it is turned on, changes streams, and writes no event", async () => {
  const password = "operator-password";
  await using own = await startConfiguredNats({
    configuration: `include ${usersFile}`,
    env: { ...passwordsEnv, TAPEDECK_NATS_OPERATOR_PASSWORD: password },
    files: { [usersFile]: (await readUsers()).replaceAll(/^#\+ /gm, "") },
  });
  const ingest = await connectAs("ingest", own);
  const operator = await connectNats("operator", { url: own.url, user: "operator", password }, silentLogger);
  await using _ = closing(ingest, operator);
  await using log = await openLog(ingest, { workspace: "default" });
  const jsm = await jetstreamManager(operator);
  for await (const { config } of jsm.streams.list()) await jsm.streams.update(config.name, { description: "seen" });
  expect((await jsm.streams.info(streamOf("default"))).config.description).toBe("seen");
  expect(log.epoch).not.toBe("");
  expect(await violations(own)).toEqual([]);
  const event = eventSubject("default/alice/shop/skaffold" as Stack["source"], "v1", "build.started");
  await expect(operator.request(event, "{}")).rejects.toThrow("Permissions Violation");
});

const log = eventSubject("default/alice/shop/skaffold" as Stack["source"], "v1", "build.started");
const api = (what: string, stream = streamOf("default")) => `$JS.API.STREAM.${what}.${stream}`;
const tokens = "KV_TAPEDECK_TOKENS";
/** All streams with their settings. */
const list = "$JS.API.STREAM.LIST";
const queries = "KV_TAPEDECK_QUERIES";
const otherInboxes = (user: NatsUser) => natsUsers.filter((one) => one !== user).map((one) => `_INBOX.${one}.>`);

/** Rights that no service needs. */
const nobody = {
  publish: [
    ...["anything", "$JS.API.INFO", "$SYS.REQ.SERVER.PING"],
    ...[api("PURGE"), api("DELETE", tokens), api("PURGE", tokens), api("MSG.DELETE", tokens)],
    ...[api("PURGE", "TAPEDECK_AUDIT"), api("DELETE", "TAPEDECK_AUDIT")],
    ...["_INBOX.ingest.x", "_INBOX.query.x", "_INBOX.gateway.x", "_INBOX.cli.x"],
  ],
  subscribe: [">", "_INBOX.>", "tapedeck.>", "tapedeck.v2.>", "$KV.TAPEDECK_TOKENS.>", "$JS.>"],
};

/** Ingest alone takes an erased person out. */
const persons = [api("MSG.DELETE", "TAPEDECK_AUDIT"), api("MSG.DELETE", "TAPEDECK_ENDS")];

const refused: Readonly<Record<NatsUser, typeof nobody>> = {
  ingest: {
    publish: [
      ...[api("UPDATE"), api("SNAPSHOT"), api("RESTORE"), api("INFO", tokens), api("MSG.GET", tokens), list],
      ...["KV_TAPEDECK_OWNERS", "KV_TAPEDECK_ERASURES", "KV_TAPEDECK_WORKSPACES", "TAPEDECK_ENDS"].map((stream) =>
        api("DELETE", stream),
      ),
      ...["$KV.TAPEDECK_TOKENS.x", "tapedeck.control.x", "tapedeck.adopt.x", "tapedeck.ends.default.tables"],
      ...[queryMapSubject, api("MSG.DELETE", queries)],
    ],
    subscribe: ["tapedeck.observed.>", "tapedeck.heard.>", "tapedeck.tables.*.end", "tapedeck.tables.*.passed"],
  },
  query: {
    publish: [
      ...persons,
      ...[list, "$KV.TAPEDECK_WORKSPACES.removal.x"],
      ...[log, api("CREATE"), api("DELETE"), api("UPDATE"), api("MSG.DELETE"), api("SNAPSHOT"), api("RESTORE")],
      ...[
        api("MSG.GET", tokens),
        api("INFO", tokens),
        api("MSG.GET", "TAPEDECK_AUDIT"),
        api("MSG.GET", "TAPEDECK_ENDS"),
      ],
      ...["$JS.API.CONSUMER.CREATE.TAPEDECK_ENDS", "$JS.API.CONSUMER.CREATE.TAPEDECK_AUDIT.x.y"],
      ...["$KV.TAPEDECK_TOKENS.x", "$KV.TAPEDECK_OWNERS.x", api("DELETE", queries), api("UPDATE", queries)],
      ...[
        "tapedeck.control.x",
        "tapedeck.observed.x",
        "tapedeck.heard.x",
        "tapedeck.ends.default.source.x",
        "tapedeck.ends.default.holes",
      ],
      ...["$JS.API.DIRECT.GET.TAPEDECK_ENDS", "$JS.API.DIRECT.GET.TAPEDECK_ENDS.tapedeck.ends.default.key"],
      "tapedeck.condition.ingest",
      ...["tapedeck-audit.default", "$KV.TAPEDECK_ERASURES.open.x"],
    ],
    subscribe: ["tapedeck.control.>", "tapedeck.adopt.>", "$KV.TAPEDECK_OWNERS.*"],
  },
  gateway: {
    publish: [
      ...persons,
      ...[log, api("CREATE"), api("DELETE"), api("UPDATE"), api("MSG.DELETE"), api("RESTORE")],
      ...["$KV.TAPEDECK_WORKSPACES.removal.x", "$KV.TAPEDECK_WORKSPACES.retention.x"],
      ...["$KV.TAPEDECK_OWNERS.x", "tapedeck.adopt.x", "tapedeck.observed.x", "tapedeck.condition.ingest"],
      ...[queryMapSubject, api("CREATE", queries)],
      ...["$KV.TAPEDECK_ERASURES.open.x", api("SNAPSHOT", "TAPEDECK_ENDS"), api("MSG.GET", "TAPEDECK_ENDS")],
      ...[
        "tapedeck.ends.default.tables",
        "tapedeck.ends.default.source.x",
        "tapedeck.ends.default.first",
        "tapedeck.ends.default.holes",
      ],
      ...["$JS.API.DIRECT.GET.TAPEDECK_ENDS", "$JS.API.DIRECT.GET.TAPEDECK_ENDS.tapedeck.ends.default.key"],
    ],
    subscribe: ["tapedeck.control.>", "tapedeck.adopt.>", "tapedeck.observed.>", "$KV.TAPEDECK_OWNERS.*"],
  },
  cli: {
    publish: [
      ...persons,
      ...[log, list, "$KV.TAPEDECK_WORKSPACES.removal.x"],
      ...[api("DELETE", "TAPEDECK_ENDS"), api("UPDATE", tokens), api("MSG.GET", "TAPEDECK_AUDIT")],
      "$KV.TAPEDECK_OWNERS.x",
      ...[queryMapSubject, api("DELETE", queries), api("UPDATE", queries)],
      "tapedeck.control.x",
      "tapedeck.adopt.x",
      "tapedeck.ends.default.tables",
    ],
    subscribe: ["tapedeck.control.>", "tapedeck.observed.>"],
  },
};

describe.each(natsUsers)("the user of %s", (user) => {
  it("may publish nothing that it does not need", async () => {
    const nc = await connectAs(user, nats);
    await using _ = closing(nc);
    for (const subject of [...nobody.publish, ...refused[user].publish]) {
      await expect(nc.request(subject, "{}"), subject).rejects.toThrow(
        `Permissions Violation for Publish to "${subject}"`,
      );
    }
  });

  it("may hear nothing that is not for it", async () => {
    const nc = await connectAs(user, nats);
    await using _ = closing(nc);
    for (const subject of [...nobody.subscribe, ...refused[user].subscribe, ...otherInboxes(user)]) {
      const { promise, resolve } = Promise.withResolvers<Error | null>();
      nc.subscribe(subject, { callback: resolve });
      expect([subject, (await promise)?.name]).toEqual([subject, "PermissionViolationError"]);
    }
  });
});

function closing(...connections: readonly NatsConnection[]): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => void (await Promise.all(connections.map((connection) => connection.close()))),
  };
}
