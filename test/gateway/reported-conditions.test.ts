import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { migrated } from "@tapedeck/query/testing/migrated";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { sourceName } from "@tapedeck/shared/source";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { newEvent, publishEach } from "@tapedeck/shared/testing/log-messages";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { startCli } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Stack, startStack } from "../stack/stack.ts";

// Ingest's findings about the log appear in the gateway's /readyz and in `tapedeck status`, on another machine too.

const folder = mkdtempSync(join(tmpdir(), "reported-conditions-"));
const cleanup = new AsyncDisposableStack();
let stack: Stack;
let fake: Awaited<ReturnType<typeof startFakeSkaffold>>;

const full = "nothing is recorded: the log's disk is full";
const lost =
  'the log of the workspace "default" has lost 3 recorded events, because its files were damaged (default/bob/web/skaffold 3): session.gap events show where; `tapedeck restore` restores a backup';

beforeAll(async () => {
  const recording = loadRecording(recordingFolder("01-dev-success-3-artifacts-5-iterations"));
  fake = cleanup.use(await startFakeSkaffold({ recording }));
  // The recording takes more in the log, compressed.
  const nats = cleanup.use(await startTestNats({ maxFileStore: "25KB" }));
  const database = cleanup.use(await freshDatabase(migrated)).url;
  await damagedLog(nats.url);
  stack = cleanup.use(await startStack({ skaffold: [{ address: fake.address }], servers: { nats, database } }));
});
afterAll(async () => {
  await cleanup.disposeAsync();
  rmSync(folder, { recursive: true, force: true });
});

/** The messages with the ordinals 3 to 5 are missing between two of one session. */
async function damagedLog(url: string): Promise<void> {
  const nc = await connect({ servers: url });
  const source = sourceName({ workspace: "default", developer: "bob", project: "web", upstream: "skaffold" });
  {
    await using log = await openLog(nc, { workspace: "default" });
    const session = { session: "01KE3M9Z6Q4W8T2V5X7Y9A1B3C" };
    const events = [1, 2, 6].map((ordinal) => newEvent(source, ordinal, session));
    await publishEach(log.writer, source, events, 0);
  }
  await nc.close();
}

async function ready() {
  const { status, body } = await stack.httpCall("GET", "/readyz");
  return { status, body: JSON.parse(body) as unknown };
}

async function tapedeckStatus() {
  const env = { TAPEDECK_URL: `http://${stack.http}`, TAPEDECK_DATA: join(folder, "data"), XDG_STATE_HOME: folder };
  await using cli = startCli(["status"], { cwd: folder, env });
  return { code: await cli.ended, lines: cli.stdout().split("\n"), err: cli.stderr() };
}

it("a log that has lost events is reported, and everything stays ready", async () => {
  const checks = { log: "ok", query: "ok", recording: "ok" };
  const answer = { status: 200, body: { ready: true, checks, details: { warnings: [lost] } } };
  await until(async () => isDeepStrictEqual(await ready(), answer), { message: "the damage to be reported" });
  const { code, lines } = await tapedeckStatus();
  expect(code).toBe(0);
  expect(lines).toContain(lost);
  expect(lines.join()).not.toContain(full);
});

const promisedMs = 5_000;

it("a full disk makes the gateway not ready with the reason, also while query is away", async () => {
  await fake.play();
  const checks = { log: "ok", query: "ok", recording: full };
  const answer = { status: 503, body: { ready: false, checks, details: { warnings: [lost] } } };
  await until(async () => isDeepStrictEqual(await ready(), answer), {
    message: "the full disk to be reported",
    deadlineMs: promisedMs,
  });
  const withQuery = await tapedeckStatus();
  expect(withQuery).toMatchObject({ code: 0, lines: expect.arrayContaining([`gateway: ${full}`, lost]) });
  expect(withQuery.lines.join("\n")).toContain("bob/web");

  await stack.parts.query[Symbol.asyncDispose]();
  const without = await tapedeckStatus();
  expect(without).toMatchObject({ code: 1, lines: expect.arrayContaining([`gateway: ${full}`, lost]) });
  expect(without.err).not.toBe("");
});
