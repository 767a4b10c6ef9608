import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { migrated } from "@tapedeck/query/testing/migrated";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { urlOf } from "tapedeck/testing/recorder";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { httpCall } from "../stack/http-call.ts";
import { startTwoShards, type TwoShards } from "./two-shards.ts";

const workspaces = ["team-a", "team-b"] as const;

type Item = { readonly id: string; readonly position: string; readonly source: string };
const withoutPosition = ({ position: _, ...item }: Item) => item;

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(inject("serversFolder"), "shard-backups-"));
});

/** A tap of the workspace records a build through the gateway. */
async function record(on: TwoShards, workspace: string, project: string): Promise<void> {
  await using fake = await startFakeSkaffold({
    recording: loadRecording(recordingFolder("12-skaffold-build-one-shot")),
  });
  await using cli = startCli(["record", "--upstream", "skaffold", "--address", fake.address, "--project", project], {
    cwd,
    env: {
      TAPEDECK_URL: urlOf(on.home.grpc),
      TAPEDECK_GRPC_PORT: on.home.grpc.split(":").at(-1),
      TAPEDECK_TOKEN: await on.token(workspace, "recorder"),
      TAPEDECK_SPILL: join(cwd, `${workspace}-${project}`),
    },
  });
  await until(() => fake.peers.size === 1, { message: "the tap to dial" });
  await fake.play();
  const token = await on.token(workspace, "viewer");
  const builds = async () =>
    (await read(on, token, `/api/v1/events?after=start&project=${project}&kind=build.succeeded`)).items;
  await until(async () => (await builds()).length > 0, { message: `what ${workspace} builds` });
  cli.child.kill("SIGINT");
  expect(await cli.ended).toBe(0);
}

/** Runs a command at a shard's own NATS. */
async function tapedeck(nats: string, ...args: string[]): Promise<string> {
  await using cli = startCli([...args, "--data", "none"], { cwd, env: { TAPEDECK_NATS_URL: nats } });
  expect({ args, code: await cli.ended, err: cli.stderr() }).toMatchObject({ code: 0 });
  return cli.stdout();
}

const read = async ({ home }: TwoShards, token: string, path: string) => {
  const { status, body } = await httpCall(home.http, "GET", path, { authorization: `Bearer ${token}` });
  expect({ path, status, body }).toMatchObject({ status: 200 });
  return JSON.parse(body);
};

/** The entries of the map, which is in home. */
async function mapIn({ home }: TwoShards): Promise<Readonly<Record<string, string>>> {
  const nc = await connect({ servers: home.parts.nats.url });
  const { streams } = await jetstreamManager(nc);
  const entry = async (workspace: string) => {
    const found = await streams.getMessage("KV_TAPEDECK_SHARDS", { last_by_subj: `$KV.TAPEDECK_SHARDS.${workspace}` });
    return [workspace, found?.string()] as const;
  };
  const entries = await Promise.all(workspaces.map(entry));
  await nc.close();
  return Object.fromEntries(entries.map(([workspace, shard]) => [workspace, shard ?? "none"]));
}

async function emptyServers() {
  const nats = cleanup.use(await startTestNats());
  return { nats, database: cleanup.use(await freshDatabase(migrated)).url };
}

it("each shard's backup comes back in empty servers, with the tokens, and every workspace is where it was", async () => {
  const tokens: Record<string, string> = {};
  const before = { map: {}, pages: [] as { items: Item[] }[] };
  {
    await using on = await startTwoShards({ workspaces: ["team-b"] });
    for (const workspace of workspaces) {
      await record(on, workspace, "shop");
      tokens[workspace] = await on.token(workspace, "admin");
      before.pages.push(await read(on, tokens[workspace], "/api/v1/events?after=start&limit=1000"));
    }
    before.map = await mapIn(on);
    for (const shard of ["home", "two"] as const) await tapedeck(on[shard].parts.nats.url, "backup", shard);
    // What comes after the backup does not come back.
    await record(on, "team-b", "later");
  }
  expect(before.map).toEqual({ "team-a": "home", "team-b": "two" });

  const servers = { home: await emptyServers(), two: await emptyServers() };
  for (const shard of ["home", "two"] as const) await tapedeck(servers[shard].nats.url, "restore", shard);
  // No setting says where team-b is.
  await using on = await startTwoShards({}, servers);
  await on.home.caughtUp();
  await on.two.caughtUp();
  for (const [index, workspace] of workspaces.entries()) {
    const token = tokens[workspace] ?? "";
    const { items: kept = [] } = before.pages[index] ?? {};
    expect(kept.length).toBeGreaterThan(10);
    const { items } = await read(on, token, "/api/v1/events?after=start&limit=1000");
    // A start may add that a source is lost. Positions have the new epoch.
    expect(items.slice(0, kept.length).map(withoutPosition)).toEqual(kept.map(withoutPosition));
    expect(items.filter(({ source }: Item) => source.endsWith("/later/skaffold"))).toEqual([]);
    expect((await read(on, token, "/api/v1/operations?kind=build")).items.length).toBeGreaterThan(0);
    // Those of before are good.
    const after = await read(on, token, `/api/v1/events?after=${kept[1]?.position}&limit=1000`);
    expect(after.items.map(({ id }: Item) => id)).toEqual(items.slice(2).map(({ id }: Item) => id));
  }
  expect(await mapIn(on)).toEqual(before.map);
  await record(on, "team-b", "more");
  expect(await on.home.log.lastMatch(["tapedeck.v2.team-b.>"])).toBe(0);
});
