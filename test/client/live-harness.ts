import { readConfig } from "@tapedeck/gateway/config";
import { type Gateway, startGateway } from "@tapedeck/gateway/gateway";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { type Scenario, scenario, startedAt } from "@tapedeck/query/testing/scenario";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";
import { gatewayEnv } from "../stack/stack.ts";
import { type CuttingProxy, cuttingProxy } from "../transports/cutting-proxy.ts";

/** A seeded stack whose gateway can be stopped and started while its address stays the same. */
export type LiveHarness = AsyncDisposable & {
  readonly seeded: SeededStack;
  /** The address of the present gateway for clients. */
  readonly url: string;
  /** Another address of the gateway, whose connections can be cut. */
  cuttable(): Promise<CuttingProxy>;
  /** Returns a writer of builds of acme/<developer>/shop. */
  writer(developer: string): ScenarioWriter;
  stop(): Promise<void>;
  start(): Promise<void>;
};

export type ScenarioWriter = {
  readonly scenario: Scenario;
  readonly session: ReturnType<Scenario["session"]>;
  /** Writes the scenario's new events; resolves with their positions. */
  written(): Promise<readonly Written[]>;
  /** Adds events of an artifact's builds, started and ended, and writes them. */
  builds(count: number, artifact?: string): Promise<readonly Written[]>;
};

export type Written = Event & { readonly position: string };

export async function startLiveHarness(env: Readonly<Record<string, string>> = {}): Promise<LiveHarness> {
  await using cleanup = new AsyncDisposableStack();
  const seeded = cleanup.use(await startSeededStack(env));
  let gateway: Gateway | undefined;
  const stop = async () => {
    await gateway?.[Symbol.asyncDispose]();
    gateway = undefined;
  };
  const start = async () => {
    const gatewaySettings = gatewayEnv(seeded.stack.parts);
    gateway = await startGateway(readConfig({ env: { ...gatewaySettings, ...env } }), silentLogger);
  };
  cleanup.defer(stop);
  await start();
  const proxies = cleanup.use(new AsyncDisposableStack());
  const cuttable = async () => proxies.use(await cuttingProxy(() => gateway?.addresses.http ?? "127.0.0.1:1"));
  const proxy = await cuttable();
  const owned = cleanup.move();
  return {
    seeded,
    cuttable,
    url: `http://${proxy.address}`,
    writer: (developer) => writer(seeded, developer),
    stop,
    start,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function writer(seeded: SeededStack, developer: string): ScenarioWriter {
  const own = scenario(sourceName({ workspace: "acme", developer, project: "shop", upstream: "skaffold" }));
  const session = own.session(`01${developer.toUpperCase()}`);
  let done = 0;
  const written = async () => {
    const fresh = own.events.slice(done);
    done = own.events.length;
    const seqs = await seeded.write(fresh);
    return fresh.map((event, index) => ({ ...event, position: seeded.at(seqs[index] ?? 0) }));
  };
  // Scenarios count from a fixed day; this one happens now.
  session.started({ branch: "main" }, Date.now() - startedAt);
  session.configured();
  session.loopStarted();
  return {
    scenario: own,
    session,
    written,
    async builds(count, artifact = "web") {
      for (let index = 0; index < count; index++)
        session.build(artifact, index % 2 === 0 ? "started" : index % 4 === 1 ? "succeeded" : "failed");
      return (await written()).filter(({ kind }) => kind.startsWith("build."));
    },
  };
}
