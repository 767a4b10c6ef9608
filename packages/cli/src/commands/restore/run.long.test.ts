import { mkdtemp, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openLeases } from "@tapedeck/ingest/record/journal/lease";
import { openTestEnds } from "@tapedeck/ingest/testing/test-ends";
import { migrate } from "@tapedeck/query/db/migrate";
import { openDatabase } from "@tapedeck/query/for-cli/maintain";
import { backUpLog } from "@tapedeck/shared/log/backup";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sequenceOf } from "@tapedeck/shared/log/offset";
import { SinkStore } from "@tapedeck/shared/sinks/sink-store";
import { sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { newEvent, testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import { endPosition } from "@tapedeck/shared/testing/positions";
import { backupOf, openTokenStore, type TokenBackup } from "@tapedeck/shared/tokens/store";
import { makeToken } from "@tapedeck/shared/tokens/token";
import type { NatsConnection } from "nats";
import { expect, inject, it, onTestFinished, vi } from "vitest";
import { bytesText } from "../../display/durations.ts";
import { newBackup } from "../../maintain/backup-folder.ts";
import { auditEntries, refuseAudit } from "../../testing/audit.ts";
import { startCli } from "../../testing/cli.ts";
import { progressPipe, progressTerminal } from "../../testing/progress.ts";
import { restore } from "./run.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const onThisMachine = expect.stringMatching(/^\S+ on this machine$/);
const aToken = (name: string) => makeToken({ name, workspace: "acme", roles: ["viewer"], lifetimeMs: 3_600_000 });

/** A folder whose settings name a NATS that `up` has not started. */
async function place() {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startTestNats());
  const connection = stack.adopt(await connectThroughRestarts(nats.url), (nc) => nc.close());
  const cwd = await mkdtemp(join(inject("serversFolder"), "restore-"));
  await writeFile(join(cwd, "tapedeck.yaml"), `nats: { url: "${nats.url}" }\n`);
  const owned = stack.move();
  return {
    nats,
    connection,
    cwd,
    tapedeck: async (...args: string[]) => {
      await using cli = startCli(args, { cwd });
      return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function backUpTo(folder: string, connection: NatsConnection, tokens: TokenBackup = {}): Promise<void> {
  await using backup = await newBackup(folder);
  await backup.begin("acme");
  await backup.end(await backUpLog(connection, "acme", backup.take));
  await backup.finish({ tokens, sinks: {} });
}

const lastOf = async (nc: NatsConnection) => {
  await using log = await openLog(nc, { workspace: "acme" });
  const lastSeq = sequenceOf((await log.reader.bounds()).lastOffset);
  return { epoch: log.epoch, formerEpochs: log.reader.formerEpochs, lastSeq };
};

it("a log and its tokens come back to a NATS of the user's: nothing is replaced unasked, and no revoked token is good again", async () => {
  await using there = await place();
  const { connection, cwd, tapedeck } = there;
  const tokens = await openTokenStore(connection);
  const [kept, lost, revokedBefore, revokedAfter] = [aToken("kept"), aToken("lost"), aToken("before"), aToken("after")];
  for (const token of [kept, revokedBefore, revokedAfter]) await tokens.create(token);
  await tokens.revoke(revokedBefore.record.id);
  const { epoch } = await lastOf(connection);
  {
    await using log = await openLog(connection, { workspace: "acme" });
    const writer = testWriter(log.writer, source);
    await writer.append(5);
    const known = { ...backupOf(await tokens.read()), [lost.hash]: lost.record };
    await backUpTo(join(cwd, "kept"), connection, known);
    await writer.append(3);
  }
  expect(await readFile(join(cwd, "kept", "tokens.json"), "utf8")).not.toContain(kept.text.slice(4));
  await tokens.revoke(revokedAfter.record.id);

  expect(await tapedeck("restore", "kept")).toMatchObject({ code: 1, err: expect.stringContaining("add --replace") });
  {
    await using leases = await openLeases(connection, "I");
    await using _ = await leases.take(source, "T");
    const refused = await tapedeck("restore", "kept", "--replace");
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("an ingest of it is running") });
  }
  const restored = await tapedeck("restore", "kept", "--replace");
  expect(restored).toMatchObject({ code: 0, err: "" });
  expect(restored.out).toContain("restored 5 messages");
  expect(restored.out).toContain("restored 1 token;");
  expect(restored.out).toContain("1 token of the backup has been revoked since, and stays revoked");
  expect(await lastOf(connection)).toMatchObject({ lastSeq: 5, formerEpochs: [{ epoch, lastSeq: 5 }] });
  const restoredAs = { who: onThisMachine, kind: "local", workspace: "acme", action: "log.restored" };
  const { epoch: now } = await lastOf(connection);
  const about = { epoch: now, messages: 5, kept: expect.stringContaining("replaced") };
  expect(await auditEntries(connection)).toEqual([{ ...restoredAs, about }]);
  const names = (await tokens.list()).map(({ name }) => name);
  expect(names.sort()).toEqual(["kept", "lost"]);
});

it("sinks come back that are missing, with their secrets, and where the backup had them", async () => {
  await using there = await place();
  const { connection, cwd, tapedeck } = there;
  const sinks = new SinkStore(connection);
  const hook = { workspace: "acme", sink: "hook" };
  {
    await using log = await openLog(connection, { workspace: "acme" });
    await testWriter(log.writer, source).append(2);
  }
  await sinks.put({ ...hook, type: "sink" }, { secret: "whsec_secret" });
  await sinks.put({ ...hook, type: "cursor" }, { position: "1100-gcj869" });
  await sinks.put({ ...hook, workspace: "globex", type: "sink" }, {});
  expect(await tapedeck("backup", "kept", "--data", ".tapedeck")).toMatchObject({ code: 0 });
  const { mode } = await stat(join(cwd, "kept", "sinks.json"));
  expect(mode & 0o777).toBe(0o600);
  await sinks.put({ ...hook, type: "cursor" }, { position: "1200-gcj869" });
  await sinks.remove({ ...hook, type: "sink" });
  await connection.request(
    "$JS.API.STREAM.PURGE.KV_TAPEDECK_SINKS",
    JSON.stringify({ filter: "$KV.TAPEDECK_SINKS.sink.>" }),
  );
  const restored = await tapedeck("restore", "kept", "--replace");
  expect(restored).toMatchObject({ code: 0, out: expect.stringContaining("restored 1 sink\n") });
  const all = await sinks.all(["sink", "cursor"]);
  expect(all.map(({ workspace, value }) => [workspace, value])).toEqual([
    ["acme", { secret: "whsec_secret" }],
    ["acme", { position: "1200-gcj869" }],
  ]);
});

const notAudited = /^tapedeck: this action is missing from the audit log: .*message size exceeds/m;

it("a restore that can't be in the audit log says so, and is done whole", async () => {
  await using there = await place();
  const { connection, cwd, tapedeck } = there;
  const kept = aToken("kept");
  {
    await using log = await openLog(connection, { workspace: "acme" });
    await testWriter(log.writer, source).append(5);
    await backUpTo(join(cwd, "kept"), connection, { [kept.hash]: kept.record });
    await using ends = await openTestEnds(connection, { workspace: "acme", epoch: log.epoch });
    ends.reached(source, 9, newEvent(source, 9).cursor);
  }
  await refuseAudit(connection);
  const restored = await tapedeck("restore", "kept", "--replace");
  expect(restored).toMatchObject({ code: 0, err: expect.stringMatching(notAudited) });
  expect(restored.out).toContain("restored 1 token;");
  expect(await (await openTokenStore(connection)).list()).toEqual([kept.record]);
  await using ends = await openTestEnds(connection, { workspace: "acme", epoch: (await lastOf(connection)).epoch });
  expect(await ends.all()).toEqual(new Map());
});

it("a new epoch that can't be in the audit log says so, and is said", async () => {
  await using there = await place();
  const { connection, tapedeck } = there;
  const { epoch } = await lastOf(connection);
  await refuseAudit(connection);
  const renewed = await tapedeck("new-epoch", "--workspace", "acme", "--yes");
  const { epoch: now } = await lastOf(connection);
  expect(now).not.toBe(epoch);
  expect(renewed).toMatchObject({ code: 0, err: expect.stringMatching(notAudited) });
  expect(renewed.out).toContain(`continues as epoch ${now}`);
});

it("a restore and a new epoch that could not empty the tables name the foreign keys, before they touch the log", async () => {
  await using there = await place();
  const { connection, cwd, nats, tapedeck } = there;
  const { epoch } = await lastOf(connection);
  await using tables = await freshDatabase();
  await using database = openDatabase({ url: tables.url, connections: 1 });
  await migrate(database);
  await using owned = new AsyncDisposableStack();
  const postgres = owned.adopt(await database.connect(), (client) => client.end());
  // Tables beyond the log's end.
  await postgres.query(
    `insert into tapedeck_internal.checkpoint (workspace, projection, epoch, position) values ('acme', '', '${epoch}', 1000000)`,
  );
  await postgres.query("create schema team");
  await postgres.query('create table team."My marks" (session text references tapedeck.sessions)');
  {
    await using log = await openLog(connection, { workspace: "acme" });
    const writer = testWriter(log.writer, source);
    await writer.append(5);
    await backUpTo(join(cwd, "kept"), connection);
    await writer.append(3);
  }
  await writeFile(join(cwd, "tapedeck.yaml"), `nats: { url: "${nats.url}" }\npostgres: { url: "${tables.url}" }\n`);
  const before = await lastOf(connection);
  for (const command of [
    ["restore", "kept", "--replace"],
    ["new-epoch", "--yes"],
  ]) {
    expect(await tapedeck(...command)).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining('"My marks_session_fkey" of team."My marks"'),
    });
    expect(await lastOf(connection)).toEqual(before);
  }
  await postgres.query('alter table team."My marks" drop constraint "My marks_session_fkey"');
  const emptied = { code: 0, out: expect.stringContaining("they are rebuilt at the next start") };
  expect(await tapedeck("restore", "kept", "--replace")).toMatchObject(emptied);
});

it("a restore shows its progress, in a pipe and on a terminal", async () => {
  await using there = await place();
  const { connection, cwd } = there;
  {
    await using log = await openLog(connection, { workspace: "acme" });
    await testWriter(log.writer, source).append(5);
    await backUpTo(join(cwd, "kept"), connection);
  }
  vi.stubEnv("TAPEDECK_CONFIG", join(cwd, "tapedeck.yaml"));
  const output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });
  const options = { data: join(cwd, "data"), replace: true };
  const pipe = progressPipe(60_000);
  await restore(join(cwd, "kept"), options, pipe);
  const terminal = progressTerminal();
  await restore(join(cwd, "kept"), options, terminal);
  const bytes = bytesText((await stat(join(cwd, "kept", "acme", "stream.tar.s2"))).size);
  expect(pipe.lines().at(-1)).toBe(`restore: ${bytes}`);
  expect(terminal.text()).toContain(`restore: ${bytes}`);
  // It hides the cursor, and shows it again when it takes itself away.
  expect(terminal.text().lastIndexOf("\u001b[?25h")).toBeGreaterThan(terminal.text().lastIndexOf("restore:"));
  expect(output.mock.calls.flat().filter((line) => /^restored 5 messages/.test(String(line)))).toHaveLength(2);
});

it("a log that lost its end goes on under new positions when it is said to", async () => {
  await using there = await place();
  const { connection, tapedeck } = there;
  const { epoch } = await lastOf(connection);
  {
    await using log = await openLog(connection, { workspace: "acme" });
    await testWriter(log.writer, source).append(5);
    await using ends = await openTestEnds(connection, { workspace: "acme", epoch });
    ends.reached(source, 9, newEvent(source, 9).cursor);
  }
  expect(await tapedeck("new-epoch")).toMatchObject({ code: 1, err: expect.stringContaining("confirm with --yes") });
  const renewed = await tapedeck("new-epoch", "--workspace", "acme", "--yes");
  expect(renewed).toMatchObject({
    code: 0,
    out: expect.stringContaining(`positions up to ${endPosition(epoch, 5)} remain valid`),
  });
  const now = await lastOf(connection);
  const entry = {
    who: onThisMachine,
    kind: "local",
    workspace: "acme",
    action: "log.epoch-renewed",
    about: { epoch: now.epoch },
  };
  expect(await auditEntries(connection)).toEqual([entry]);
  expect(now).toMatchObject({ lastSeq: 5, formerEpochs: [{ epoch, lastSeq: 5 }] });
  await using ends = await openTestEnds(connection, { workspace: "acme", epoch: now.epoch });
  expect(await ends.lastSeq()).toBe(0);
  // What the lost end had is known, so that its ordinals are not given again.
  expect((await ends.endOf(source))?.cursor.ordinals).toEqual({ v1: 9 });
});
