import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { type Stack, type StackServers, startStack } from "../stack/stack.ts";

const workspaces = ["team-a", "team-b"] as const;

type Item = { readonly id: string; readonly position: string; readonly source: string };
const withoutPosition = ({ position: _, ...item }: Item) => item;

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "backups-"));
});

type Recorded = AsyncDisposable & {
  readonly stack: Stack;
  readonly token: (workspace: string, role: Role) => Promise<string>;
};

/** `servers`: those with data; by default new ones. */
async function start(servers?: StackServers): Promise<Recorded> {
  await using owned = new AsyncDisposableStack();
  const stack = owned.use(await startStack({ env: { TAPEDECK_AUTH: "tokens" }, ...(servers && { servers }) }));
  const nats = owned.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  const tokens = await openTokenStore(nats);
  const token = async (workspace: string, role: Role) => {
    const made = makeToken({ name: "of a test", developer: "alice", lifetimeMs: 3_600_000, workspace, roles: [role] });
    await tokens.create(made);
    return made.text;
  };
  const moved = owned.move();
  return { stack, token, [Symbol.asyncDispose]: () => moved.disposeAsync() };
}

/** A tap of the workspace records a build through the gateway. */
async function record({ stack, token }: Recorded, workspace: string, project: string): Promise<void> {
  await using fake = await startFakeSkaffold({
    recording: loadRecording(recordingFolder("12-skaffold-build-one-shot")),
  });
  await using cli = startCli(["record", "--upstream", "skaffold", "--address", fake.address, "--project", project], {
    cwd,
    env: {
      TAPEDECK_URL: urlOf(stack.grpc),
      TAPEDECK_GRPC_PORT: stack.grpc.split(":").at(-1),
      TAPEDECK_TOKEN: await token(workspace, "recorder"),
      TAPEDECK_SPILL: join(cwd, `${workspace}-${project}`),
    },
  });
  await until(() => fake.peers.size === 1, { message: "the tap to dial" });
  await fake.play();
  const viewer = await token(workspace, "viewer");
  const builds = async () =>
    (await read(stack, viewer, `/api/v1/events?after=start&project=${project}&kind=build.succeeded`)).items;
  await until(async () => (await builds()).length > 0, { message: `what ${workspace} builds` });
  cli.child.kill("SIGINT");
  expect(await cli.ended).toBe(0);
}

/** Runs a command at a NATS. */
async function tapedeck(nats: string, ...args: string[]): Promise<string> {
  await using cli = startCli([...args, "--data", "none"], { cwd, env: { TAPEDECK_NATS_URL: nats } });
  expect({ args, code: await cli.ended, err: cli.stderr() }).toMatchObject({ code: 0 });
  return cli.stdout();
}

const read = async ({ http }: Stack, token: string, path: string) => {
  const { status, body } = await httpCall(http, "GET", path, { authorization: `Bearer ${token}` });
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return JSON.parse(body);
};

it("a backup comes back in empty servers, with all workspaces, their tokens and positions", async () => {
  const tokens: Record<string, string> = {};
  const pages: { items: Item[] }[] = [];
  {
    await using on = await start();
    for (const workspace of workspaces) {
      await record(on, workspace, "shop");
      tokens[workspace] = await on.token(workspace, "admin");
      pages.push(await read(on.stack, tokens[workspace], "/api/v1/events?after=start&limit=1000"));
    }
    await tapedeck(on.stack.parts.nats.url, "backup", "backup");
    // What comes after the backup does not come back.
    await record(on, "team-b", "later");
  }

  const nats = cleanup.use(await startTestNats());
  await tapedeck(nats.url, "restore", "backup");
  await using on = await start({ nats, database: cleanup.use(await freshDatabase(migrated)).url });
  await on.stack.caughtUp();
  for (const [index, workspace] of workspaces.entries()) {
    const token = tokens[workspace] ?? "";
    const { items: kept = [] } = pages[index] ?? {};
    expect(kept.length).toBeGreaterThan(10);
    const { items } = await read(on.stack, token, "/api/v1/events?after=start&limit=1000");
    // A start may add that a source is lost. Positions have the new epoch.
    expect(items.slice(0, kept.length).map(withoutPosition)).toEqual(kept.map(withoutPosition));
    expect(items.filter(({ source }: Item) => source.endsWith("/later/skaffold"))).toEqual([]);
    expect((await read(on.stack, token, "/api/v1/operations?kind=build")).items.length).toBeGreaterThan(0);
    // Those of before are good.
    const after = await read(on.stack, token, `/api/v1/events?after=${kept[1]?.position}&limit=1000`);
    expect(after.items.map(({ id }: Item) => id)).toEqual(items.slice(2).map(({ id }: Item) => id));
  }
  await record(on, "team-b", "more");
});
