import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { startNatsServer } from "@tapedeck/infra/local/nats-server";
import { normalizers } from "@tapedeck/ingest/normalize/normalizers";
import { Recorder } from "@tapedeck/ingest/record/recorder";
import { openStore } from "@tapedeck/ingest/store";
import type { Item, PushRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { Mailbox } from "@tapedeck/tap/push/mailbox";
import { ulid } from "ulid";
import { expect, inject, it } from "vitest";
import { eventsOf } from "./move-harness.ts";

// Four logs, as accounts of one nats-server with an ingest's recorder each, and 1,000 sources, which push in this process.

const shards = 4;
const sources = 1_000;
/** Frames of each source: five a second for so long, if the machine keeps up. */
const rounds = 25;
const roundMs = 200;

type Source = {
  readonly workspace: string;
  readonly project: string;
  push(text: string): Promise<void>;
  /** Resolves when all that was pushed is in the log. */
  readonly recorded: Promise<void>;
};

function startSource(recorder: Recorder, workspace: string, project: string): Source {
  const box = new Mailbox<PushRequest>();
  const connection = ulid();
  let index = 0n;
  const item = (what: Item["what"]) =>
    box.put({ body: { $case: "item", value: { index: ++index, connection, at: timestampNow(), what } } });
  const hello = { developer: "alice", project, upstream: "skaffold", tap: ulid(), labels: {}, redact: "off" };
  void box.put({ body: { $case: "hello", value: { ...hello, first_index: 1n, settings: {} } } });
  void item({ $case: "dialled", value: { address: "127.0.0.1:50051", channels: ["v1"] } });
  const last = BigInt(rounds) + 1n;
  const recorded = (async () => {
    for await (const { body } of recorder.push(box, { workspace, signal: new AbortController().signal })) {
      if (body?.$case === "committed" && body.value.index >= last) box.close();
    }
  })();
  const push = (text: string) =>
    item({ $case: "frame", value: { channel: "v1", bytes: Buffer.from(text), more: false } }).then(() => {});
  return { workspace, project, push, recorded };
}

it("a thousand sources over four logs are recorded once each, in their order", { timeout: 900_000 }, async () => {
  await using cleanup = new AsyncDisposableStack();
  const accounts = Array.from({ length: shards }, (_, at) => ({ name: `s${at}`, user: `s${at}`, password: "p" }));
  const dataDir = await mkdtemp(join(inject("serversFolder"), "nats-thousand-"));
  const server = cleanup.use(await startNatsServer({ binary: inject("natsServer"), dataDir, port: 0, accounts }));
  const { signal } = new AbortController();
  const stores = await Promise.all(
    accounts.map(async ({ name, user, password }) => {
      const settings = { url: server.url, user, password, syncAlways: true };
      const store = await openStore(settings, name, silentLogger, signal);
      if (store === undefined) throw new Error("a log is missing");
      return cleanup.use(store);
    }),
  );
  const recorders = stores.map((store) =>
    cleanup.use(new Recorder({ store: () => store, normalizers, logger: silentLogger, lostAfterMs: 600_000 })),
  );
  const all = Array.from({ length: sources }, (_, at) =>
    startSource(recorders[at % shards] as Recorder, `team-${at % shards}`, `p${at}`),
  );
  const began = performance.now();
  for (let round = 0; round < rounds; round++) {
    await Promise.all(all.map(({ project, push }) => push(`${project} ${round}`)));
    await pace(began, round);
  }
  const said = performance.now() - began;
  await Promise.all(all.map(({ recorded }) => recorded));
  const took = performance.now() - began;
  const count = sources * rounds;
  const rate = Math.round((count * 1_000) / took);
  console.log(
    `${count} frames in ${Math.round(took)} ms: ${rate}/s; the last was recorded ${Math.round(took - said)} ms after it was said`,
  );
  for (const [at, store] of stores.entries()) {
    const events = await eventsOf(store.log.reader, `team-${at}`);
    const frames = new Map<string, string[]>();
    for (const { source, channel, part, original } of events) {
      if (channel !== "v1" || part !== 0) continue;
      const project = source.split("/")[2] ?? "";
      const known = frames.get(project) ?? [];
      frames.set(project, known);
      known.push(Buffer.from(original?.bytes ?? []).toString());
    }
    for (const { project, workspace } of all.filter((source) => source.workspace === `team-${at}`)) {
      const expected = Array.from({ length: rounds }, (_, round) => `${project} ${round}`);
      expect([workspace, project, frames.get(project)]).toEqual([workspace, project, expected]);
    }
    expect(frames.size).toBe(sources / shards);
  }
});

/** The rate at which they speak; nothing is asserted about times. */
function pace(began: number, round: number): Promise<void> {
  const left = began + (round + 1) * roundMs - performance.now();
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, left)));
}
