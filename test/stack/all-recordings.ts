import { join } from "node:path";
import { loadRecording as loadHost } from "@tapedeck/fakes/rkt/recording";
import { loadRecording as loadSkaffold } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { loadRecording as loadVagrant } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { until } from "@tapedeck/shared/testing/until";
import { kinds, settled, startRktHost } from "../rkt/host.ts";
import { type Stack, startStack } from "./stack.ts";

const recordings = join(import.meta.dirname, "../../packages/fakes/recordings");

const developers = {
  alice: "01-dev-success-3-artifacts-5-iterations",
  bob: "04-deploy-failure-then-recovery",
  carol: "10-status-check-port-forward-sync-app-logs",
  olga: "20-old-v1.39.18",
} as const;

/** A Tapedeck with sources of every upstream, which wait. */
export type AllRecordings = AsyncDisposable & {
  readonly stack: Stack;
  /** Resolves when all that they have is in the tables. */
  readonly play: () => Promise<void>;
};

export async function startAllRecordings(): Promise<AllRecordings> {
  await using cleanup = new AsyncDisposableStack();
  const skaffolds = await Promise.all(
    Object.entries(developers).map(async ([developer, name]) => {
      const recording = loadSkaffold(join(recordings, "skaffold", name));
      return { developer, fake: cleanup.use(await startFakeSkaffold({ recording })) };
    }),
  );
  const vagrant = cleanup.use(await startFakeVagrant({}));
  const host = cleanup.use(await startRktHost(loadHost(join(recordings, "rkt", "05-app-exit-codes"))));
  const stack = cleanup.use(
    await startStack({
      skaffold: skaffolds.map(({ developer, fake }) => ({ developer, address: fake.address })),
      vagrant: [{ developer: "dana", address: vagrant.address }],
      rkt: [{ developer: "node-1", address: host.fake.address, interval: "10ms", timeout: "1h" }],
    }),
  );
  await until(async () => (await sourcesWith(stack, "upstream.connected")) === skaffolds.length + 2, {
    message: "all sources",
  });
  const play = async () => {
    await Promise.all(skaffolds.map(({ fake }) => fake.play()));
    vagrant.playSample(loadVagrant(join(recordings, "vagrant", "samples", "up.jsonl"))).to(Number.POSITIVE_INFINITY);
    await until(async () => (await sourcesWith(stack, "command.finished")) === 1, { message: "Vagrant's command" });
    for (const kind of kinds) {
      host.playTo(kind, host.polls[kind].length);
      await settled(host, stack, kind);
    }
    await stack.drained(...skaffolds.map(({ fake }) => fake));
  };
  const owned = cleanup.move();
  return { stack, play, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** The number of sources that have an event of this kind. */
async function sourcesWith(stack: Stack, kind: string): Promise<number> {
  const { body } = await stack.httpCall("GET", `/api/v1/events?after=start&limit=1000&kind=${kind}`);
  const { items } = JSON.parse(body) as { readonly items: readonly { readonly source: string }[] };
  return new Set(items.map(({ source }) => source)).size;
}
