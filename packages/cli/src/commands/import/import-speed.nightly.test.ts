import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { encodeEvent } from "@tapedeck/shared/events/codec";
import { ended, foreignSession, frameOf } from "@tapedeck/shared/testing/foreign-session";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { afterAll, expect, it, vi } from "vitest";
import { natsUser } from "../../local-server/own-servers.ts";
import { progressPipe } from "../../testing/progress.ts";
import { sessionFileLines, textOf } from "../../testing/session-file-lines.ts";
import { startUp, type TestUp } from "../../testing/up.ts";
import { importFiles } from "./run.ts";

const cwd = mkdtempSync(join(tmpdir(), "tapedeck-import-speed-"));
chmodSync(cwd, 0o711); // started by root, Postgres runs as another user
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const count = 6_000;
const rounds = 3;
/**
 * What an event of an import may cost, in publishes that are acknowledged one by one. It cost 2 to 3 of them (1.36 ms)
 * when events were not yet sent and written together. A fifth of that is 0.4 to 0.6. On an overloaded machine 0.3 were
 * seen, and 1.1 with one message and one acknowledgement per event in the log alone.
 */
const maxPublishes = 0.5;

/** A session of so many events of 591 bytes. Each call makes another one: a Tapedeck takes a session only once. */
function longSession() {
  const session = foreignSession();
  const text = (at: number) => `{"at":${at},"message":"${"x".repeat(200)}"}`;
  session.add(...Array.from({ length: count - 3 }, (_, at) => frameOf("v1", text(at), "log.line")).flat(), ended);
  return session;
}

/** The NATS of this `up`, with its settings: every acknowledged message is on the disk. */
async function natsOf({ running }: TestUp): Promise<NatsConnection> {
  const { natsPassword } = await loadSecrets(join(cwd, ".tapedeck", "secrets"));
  return await connect({ servers: `nats://${running.addresses.nats}`, user: natsUser, pass: natsPassword });
}

/** Milliseconds for all events, each published by itself when the one before is acknowledged. */
async function publishEach(nats: NatsConnection, events: readonly Event[]): Promise<number> {
  const js = jetstream(nats);
  const messages = events.map(encodeEvent);
  const started = performance.now();
  for (const message of messages) await js.publish("calibration", message);
  return performance.now() - started;
}

/** Milliseconds of `tapedeck import` without the start of its process, which is the same for any number of events. */
async function importAs({ env }: TestUp, project: string): Promise<number> {
  const file = join(cwd, `${project}.tapedeck`);
  writeFileSync(file, textOf(sessionFileLines({ sessions: [longSession()] })));
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const printed = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    const started = performance.now();
    await importFiles([file], { url: env.TAPEDECK_URL ?? "", project, redact: "on" }, progressPipe(600_000));
    const tookMs = performance.now() - started;
    expect(printed.mock.calls).toEqual([[expect.stringMatching(`recorded session .*, ${count} events`)]]);
    return tookMs;
  } finally {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  }
}

/** What query still does with an import would slow the next round. */
async function tablesFollow({ env }: TestUp, project: string): Promise<void> {
  await until(
    async () => {
      const response = await fetch(`${env.TAPEDECK_URL}/api/v1/sessions?source=default/carol/${project}/skaffold`);
      const { items } = (await response.json()) as { readonly items: readonly { readonly endReason: string | null }[] };
      if (!items[0]?.endReason) throw new Error(JSON.stringify(items));
      return true;
    },
    { message: `${project} in the tables` },
  );
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

it("an import takes a fraction of the time of a message and an acknowledgement per event", async () => {
  const { events } = longSession();
  writeFileSync(join(cwd, "tapedeck.yaml"), "sources: []\n");
  await using stack = new AsyncDisposableStack();
  const up = await startUp({ cwd, args: ["--no-demo"] });
  stack.defer(async () => void (await up.stop()));
  const nats = stack.adopt(await natsOf(up), (connection) => connection.close());
  await (await jetstreamManager(nats)).streams.add({ name: "CALIBRATION", subjects: ["calibration"], storage: "file" });

  const published: number[] = [];
  const imported: number[] = [];
  for (let round = 0; round < rounds; round++) {
    published.push(await publishEach(nats, events));
    imported.push(await importAs(up, `round-${round}`));
    await tablesFollow(up, `round-${round}`);
  }
  const figures = `published in ${published.map(Math.round)} ms, imported in ${imported.map(Math.round)} ms`;
  expect(median(imported) / median(published), figures).toBeLessThan(maxPublishes);
});
