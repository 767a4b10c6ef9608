import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { documentedQueries, pagesWithQueries } from "@tapedeck/query/testing/documented-queries";
import { until } from "@tapedeck/shared/testing/until";
import { afterEach, beforeEach, expect, it } from "vitest";
import { startCli } from "../../testing/cli.ts";
import { installSkaffold, recordingFolder } from "../../testing/skaffold-program.ts";
import { startUp } from "../../testing/up.ts";

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "tapedeck-demo-"));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

type Source = { readonly source: string; readonly status: string };
type Items<Item> = { readonly items: readonly Item[] };

/** Soon after the start there are labels, boxes and failures to look at. */
async function expectSomethingOfEachKind(url: string): Promise<void> {
  const get = async <Answer>(path: string) => (await (await fetch(`${url}/api/v1/${path}`)).json()) as Answer;
  await until(
    async () => {
      const sessions = await get<Items<{ source: string; labels: Record<string, string> }>>("sessions");
      expect(sessions.items).toContainEqual(
        expect.objectContaining({
          source: "demo/erin/cart/skaffold",
          labels: expect.objectContaining({ branch: "spike/api", ticket: "SHOP-12" }),
        }),
      );
      return true;
    },
    { message: "labels" },
  );
  const kinds = ["box.added", "build.failed", "command.finished"].map((kind) => `kind=${kind}`).join("&");
  await until(
    async () => {
      const { items } = await get<Items<{ kind: string; source: string; outcome?: string }>>(
        `events?after=start&limit=1000&${kinds}`,
      );
      const recorded = items.map(({ kind, source, outcome }) => [source, kind, outcome]);
      expect(recorded).toContainEqual(["demo/erin/cart/skaffold", "build.failed", "failed"]);
      // The first one.
      const [box, command] = ["box.added", "command.finished"].map((kind) => recorded.find((one) => one[1] === kind));
      expect(box?.[0]).toBe("demo/dana/shop/vagrant");
      expect(command).toEqual(["demo/dana/shop/vagrant", "command.finished", "failed"]);
      return true;
    },
    { message: "what fails" },
  );
}

/** What a receiver on this machine got, as `up` prints it. */
const traceLine = /^otlp: \S+ RUN \S+: (success|failure) in .*, \d+ tasks?.*, http:\/\/127\.0\.0\.1:\d+\/loops\/\S+$/m;
const messageLine =
  /^slack: :red_circle: \*\S+\*: \S.* failed.* \| .+ \| <http:\/\/127\.0\.0\.1:\d+\/loops\/\S+\|why>$/m;

it("the demo shows something for each query of the docs, and prints what its receivers get, within minutes", async () => {
  const up = await startUp({ cwd, args: ["--with", "otlp,slack"] });
  await expectSomethingOfEachKind(up.env.TAPEDECK_URL ?? "");
  const found = await until(
    async () => {
      const page = await fetch(`${up.env.TAPEDECK_URL}/api/v1/events?after=start&limit=1000&kind=build.cached`);
      return ((await page.json()) as Items<{ source: string; outcome?: string }>).items[0];
    },
    { message: "a cached build" },
  );
  expect(found).toMatchObject({ source: expect.stringMatching(/^demo\/.*\/skaffold$/), outcome: "succeeded" });
  const url = /postgres:\/\/tapedeck_analyst\S+/.exec(up.cli.stdout())?.[0] ?? "";
  await using database = openDatabase({ url, connections: 1 });
  const client = await database.connect();
  for (const query of (await Promise.all(pagesWithQueries.map(documentedQueries))).flat()) {
    await until(async () => (await client.query(query)).rows.length > 0, { message: query });
  }
  const reasons = await client.query<{ readonly failures: number; readonly unknown: number }>(
    "select count(*)::int as failures, count(*) filter (where reason in ('other', ''))::int as unknown from tapedeck.failures",
  );
  const { failures = 0, unknown = 0 } = reasons.rows[0] ?? {};
  console.log(`without a known reason: ${unknown} of ${failures} failures of the demo`);
  expect(unknown / failures).toBeLessThan(0.1);
  await client.end();
  for (const line of [traceLine, messageLine])
    await until(() => line.test(up.cli.stdout()), { message: `a line like ${line}` });
  expect(await up.stop()).toBe(0);
});

it("the demo plays developers of Skaffold and Vagrant and a rkt host, and keeps everybody else out", async () => {
  const up = await startUp({ cwd });
  const ask = (...args: string[]) => startCli(args, { cwd, env: up.env });
  expect(up.cli.stdout()).toContain("Tapedeck plays a demo");
  await until(
    async () => {
      const status = ask("status", "--json");
      await status.ended;
      const { sources } = JSON.parse(status.stdout()) as { sources: Source[] };
      expect(sources.map(({ source }) => source).sort()).toEqual([
        "demo/alice/shop/skaffold",
        "demo/bob/shop/skaffold",
        "demo/chris/blog/skaffold",
        "demo/dana/shop/vagrant",
        "demo/erin/cart/skaffold",
        "demo/gina/shop/skaffold",
        "demo/hugo/cart/skaffold",
        "demo/node-1/host/rkt",
      ]);
      return sources.every(({ status: is }) => is === "recording");
    },
    { message: "eight sources" },
  );
  expect(up.cli.stdout()).toContain("state -s node-1/host");
  // It is recorded from the connection on, and is described a moment later.
  await until(
    async () => {
      const host = ask("state", "-s", "node-1/host");
      expect([await host.ended, host.stderr()]).toEqual([0, ""]);
      expect(host.stdout()).toContain("rkt 1.30.0+git171c416f, /var/lib/rkt-");
      return true;
    },
    { message: "the host's state" },
  );
  const machines = await until(
    async () => {
      const shown = ask("state", "-s", "dana/shop");
      expect([await shown.ended, shown.stderr()]).toEqual([0, ""]);
      return ["web2 ", "up "].every((start) => shown.stdout().includes(`\n${start}`)) ? shown.stdout() : undefined;
    },
    { message: "machines" },
  );
  expect(machines).toMatch(/^up +(queued|assigned|running|succeeded) /m);
  expect(up.cli.stdout()).toContain("state -s dana/shop");
  // Skaffold's own API is about Skaffold's sources alone: the host is none of its choices.
  const ambiguous = await fetch(`${up.env.TAPEDECK_URL}/v1/state`);
  const { message } = (await ambiguous.json()) as { message: string };
  expect(message).toContain("demo/alice/shop/skaffold");
  expect(message).not.toContain("node-1");

  const second = startCli(["up", "--skaffold", "127.0.0.1:50051"], { cwd });
  expect(await second.ended).toBe(1);
  expect(second.stderr()).toMatch(
    /^tapedeck: the demo runs here \(process \d+\), and it accepts no recordings: stop it first .*\n$/,
  );

  const env = { ...up.env, PATH: installSkaffold(join(cwd, "bin")) };
  const recording = recordingFolder("12-skaffold-build-one-shot");
  const run = startCli(["run", "--", "skaffold", "build"], { cwd, env: { ...env, STAND_IN_RECORDING: recording } });
  expect(await run.ended).toBe(0);
  // The command prints this while it runs, where there is time for it, and at its end.
  expect(run.stderr()).toMatch(
    /^(tapedeck: not recorded for now: this is the demo: .*\n)?tapedeck: not recorded yet \(this is the demo: .*\): the recording waits in .*\n$/,
  );
  expect(readdirSync(join(cwd, "state", "tapedeck", "spill"))).toHaveLength(1);
  expect(await up.stop()).toBe(0);

  // What waits is meant for a Tapedeck at that port.
  const port = up.env.TAPEDECK_GRPC_PORT ?? "";
  const real = await startUp({ cwd, args: ["--no-demo"], env: { TAPEDECK_GATEWAY_GRPC_PORT: port } });
  await until(() => real.cli.stdout().includes("delivered the waiting recording of"), {
    message: "the run that waited",
  });
  // The tables follow the log.
  await until(
    async () => {
      const status = startCli(["status", "--json"], { cwd, env: real.env });
      await status.ended;
      const { sources } = JSON.parse(status.stdout()) as { sources: Source[] };
      expect(sources.map(({ source }) => source.split("/")[0])).toEqual(["default"]);
      return true;
    },
    { message: "the run that waited to be listed" },
  );
  expect(await real.stop()).toBe(0);
});
