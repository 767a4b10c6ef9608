import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { loadRecording as loadHost } from "@tapedeck/fakes/rkt/recording";
import { loadRecording as loadSkaffold } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { loadRecording as loadVagrant } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { until } from "@tapedeck/shared/testing/until";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { kinds, settled, startRktHost } from "../rkt/host.ts";
import { type Stack, startStack } from "../stack/stack.ts";
import { questionsIn, tableOf, withAnswers } from "./sql-answers.ts";

// The record behind the answers of docs/sql.md. After a change of queries or recordings: `npm run docs:answers`
// regenerates them.

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings");
const page = join(import.meta.dirname, "../../docs/sql.md");

const developers = {
  alice: "01-dev-success-3-artifacts-5-iterations",
  bob: "04-deploy-failure-then-recovery",
  carol: "10-status-check-port-forward-sync-app-logs",
  olga: "20-old-v1.39.18",
} as const;

const cleanup = new AsyncDisposableStack();
afterAll(() => cleanup.disposeAsync());
let stack: Stack;
beforeAll(async () => {
  const skaffolds = await Promise.all(
    Object.entries(developers).map(async ([developer, name]) => {
      const recording = loadSkaffold(join(recordings, "skaffold", name));
      return { developer, fake: cleanup.use(await startFakeSkaffold({ recording })) };
    }),
  );
  const vagrant = cleanup.use(await startFakeVagrant({}));
  const host = cleanup.use(await startRktHost(loadHost(join(recordings, "rkt", "05-app-exit-codes"))));
  stack = cleanup.use(
    await startStack({
      skaffold: skaffolds.map(({ developer, fake }) => ({ developer, address: fake.address })),
      vagrant: [{ developer: "dana", address: vagrant.address }],
      rkt: [{ developer: "node-1", address: host.fake.address, interval: "10ms", timeout: "1h" }],
    }),
  );
  await until(async () => (await sourcesWith("upstream.connected")) === skaffolds.length + 2, {
    message: "all sources",
  });
  await Promise.all(skaffolds.map(({ fake }) => fake.play()));
  vagrant.playSample(loadVagrant(join(recordings, "vagrant", "samples", "up.jsonl"))).to(Number.POSITIVE_INFINITY);
  await until(async () => (await sourcesWith("command.finished")) === 1, { message: "Vagrant's command" });
  for (const kind of kinds) {
    host.playTo(kind, host.polls[kind].length);
    await settled(host, stack, kind);
  }
  await stack.drained(...skaffolds.map(({ fake }) => fake));
});

/** The number of sources that have an event of this kind. */
async function sourcesWith(kind: string): Promise<number> {
  const { body } = await stack.httpCall("GET", `/api/v1/events?after=start&limit=1000&kind=${kind}`);
  const { items } = JSON.parse(body) as { readonly items: readonly { readonly source: string }[] };
  return new Set(items.map(({ source }) => source)).size;
}

it("the answers in docs/sql.md are those to its questions", async () => {
  const text = await readFile(page, "utf8");
  const questions = questionsIn(text);
  expect(questions.length).toBeGreaterThanOrEqual(15);
  const client = new Client({
    connectionString: stack.database,
    types: { getTypeParser: () => (value: unknown) => value },
  });
  await client.connect();
  try {
    await client.query("set timezone = 'UTC'");
    const answers: string[] = [];
    for (const { title, query } of questions) {
      const { fields, rows } = await client.query<(string | null)[]>({ text: query, rowMode: "array" });
      expect(rows, title).not.toEqual([]);
      answers.push(
        tableOf(
          fields.map(({ name }) => name),
          rows,
        ),
      );
    }
    await expect(withAnswers(text, answers)).toMatchFileSnapshot(page);
  } finally {
    await client.end();
  }
});
