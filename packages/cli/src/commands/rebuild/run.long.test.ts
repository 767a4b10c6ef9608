import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { ownerUrl } from "../../local-server/own-servers.ts";
import { startCli } from "../../testing/cli.ts";
import { startUp } from "../../testing/up.ts";

it("the running query rebuilds its tables by its own settings, and says what keeps it from that", async () => {
  await using cleanup = new AsyncDisposableStack();
  const cwd = mkdtempSync(join(tmpdir(), "tapedeck-rebuild-"));
  cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
  chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
  writeFileSync(join(cwd, "tapedeck.yaml"), "sources: []\n");
  const up = await startUp({ cwd, env: { TAPEDECK_QUERY_TEXT_ROWS: "true" } });
  cleanup.defer(async () => void (await up.stop()));
  const secrets = await loadSecrets(join(cwd, ".tapedeck", "secrets"));
  const url = ownerUrl(up.running.addresses.postgres ?? "", secrets);
  const database = cleanup.use(openDatabase({ url, connections: 1 }));
  const owner = cleanup.adopt(await database.connect(), (client) => client.end());
  const projection = async () =>
    (await owner.query<{ projection: string }>("select projection from tapedeck_internal.checkpoint")).rows[0]
      ?.projection;
  const rebuild = async () => {
    // A proxy of the user's is not for this machine's own addresses.
    await using cli = startCli(["rebuild"], { cwd, env: { http_proxy: "http://127.0.0.1:1" } });
    return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
  };
  // Nothing is recorded: the tables of a workspace begin with the first request for it.
  expect(await fetch(`http://${up.running.addresses.http}/api/v1/sessions`)).toMatchObject({ status: 200 });
  const before = await until(projection, { message: "the checkpoint of the tables" });
  expect(before).toContain("events+text");
  expect(await rebuild()).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^rebuilt the tables from 0 events in 0 messages of the log \([\d.]+ s\)\n$/),
    err: expect.stringContaining("tapedeck: rebuild at this machine's Tapedeck server (.tapedeck)\n"),
  });
  expect(await projection()).toBe(before);

  await owner.query("create table public.copies (build tapedeck.build_times)");
  expect(await rebuild()).toMatchObject({
    code: 1,
    out: "",
    err: expect.stringMatching(
      /\ntapedeck: the new tables can't replace .* column build of table public.copies.*afterwards\.\n$/,
    ),
  });
});
