import { readConfig } from "@tapedeck/gateway/config";
import { startGateway } from "@tapedeck/gateway/gateway";
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { write } from "@tapedeck/query/testing/scenario";
import { openLog } from "@tapedeck/shared/log/jetstream";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { type ServiceProcess, startServiceProcess } from "../faults/service-process.ts";
import { gatewayEnv, type Stack, type StackServers, startStack } from "../stack/stack.ts";

/** A shard as in the setting `shards`. */
export type ShardSetting = { readonly workspaces?: readonly string[]; readonly newWorkspaces?: boolean };

/** Two whole Tapedecks; the gateway of the first serves the log of the second as its shard `two`. */
export type TwoShards = AsyncDisposable & {
  readonly home: Stack;
  readonly two: Stack;
  /** Returns a token's text. */
  token(workspace: string, ...roles: readonly Role[]): Promise<string>;
  /** Returns the token of an admin of all workspaces. */
  adminOfAll(): Promise<string>;
  /** Writes events to a shard's log, and waits until its query has folded them. */
  seed(shard: "home" | "two", events: readonly Event[]): Promise<void>;
  /** Starts a further gateway on home with other settings of the shards; returns "host:port" of its HTTP. */
  gateway(shards: readonly (ShardSetting & { readonly name: string })[]): Promise<string>;
  /** Starts a further gateway on home with the same settings. */
  furtherGateway(): Promise<{ readonly grpc: string; readonly http: string }>;
  /** The same in a process of its own, to be killed. The caller owns it. */
  gatewayProcess(): Promise<ServiceProcess>;
  /** Ends all gateways of this process. */
  endGateways(): Promise<void>;
};

const withTokens = { TAPEDECK_AUTH: "tokens", TAPEDECK_LIMITS_REQUESTS_PER_SECOND: "100000" };

/** `servers`: those with data; by default each shard has new ones. */
export async function startTwoShards(
  setting: ShardSetting,
  servers?: Readonly<Record<"home" | "two", StackServers>>,
): Promise<TwoShards> {
  await using cleanup = new AsyncDisposableStack();
  const two = cleanup.use(await startStack({ ...(servers && { servers: servers.two }) }));
  const shardAt = (name: string, more: ShardSetting) => {
    const { nats, query, ingest } = two.parts;
    const addresses = { query: query.addresses.grpc, ingest: ingest.addresses.grpc };
    return { name, nats: { url: nats.url, syncAlways: true }, ...addresses, ...more };
  };
  const settings = (shards: readonly (ShardSetting & { readonly name: string })[]) => ({
    ...withTokens,
    TAPEDECK_SHARDS: JSON.stringify(shards.map(({ name, ...more }) => shardAt(name, more))),
  });
  const home = cleanup.use(
    await startStack({
      env: settings([{ name: "two", ...setting }]),
      ...(servers && { servers: servers.home }),
    }),
  );
  const connected = async (stack: Stack) =>
    cleanup.adopt(await connect({ servers: stack.parts.nats.url }), (nc) => nc.close());
  const [atHome, atTwo] = [await connected(home), await connected(two)];
  const tokens = await openTokenStore(atHome);
  const logs = {
    home: cleanup.use(await openLog(atHome, { syncKnown: true, timeoutMs: 20_000 })),
    two: cleanup.use(await openLog(atTwo, { syncKnown: true, timeoutMs: 20_000 })),
  };
  const create = async (request: Pick<Parameters<typeof makeToken>[0], "workspace" | "roles" | "everywhere">) => {
    const made = makeToken({ name: "of a test", developer: "alice", lifetimeMs: 3_600_000, ...request });
    await tokens.create(made);
    return made.text;
  };
  const gateways = cleanup.use(new AsyncDisposableStack());
  const owned = cleanup.move();
  const envOf = (shards: readonly (ShardSetting & { readonly name: string })[]) => ({
    ...gatewayEnv(home.parts),
    TAPEDECK_WORKSPACE: "default",
    ...settings(shards),
  });
  const start = async (shards: readonly (ShardSetting & { readonly name: string })[]) => {
    const env = envOf(shards);
    const { addresses } = gateways.use(await startGateway(readConfig({ env }), silentLogger));
    return { grpc: addresses.grpc ?? "", http: addresses.http ?? "" };
  };
  return {
    home,
    two,
    token: (workspace, ...roles) => create({ workspace, roles: [...roles] }),
    adminOfAll: () => create({ workspace: "team-a", roles: ["admin"], everywhere: true }),
    async seed(shard, events) {
      await write(logs[shard], events);
      await (shard === "home" ? home : two).caughtUp();
    },
    gateway: async (shards) => (await start(shards)).http,
    furtherGateway: () => start([{ name: "two", ...setting }]),
    gatewayProcess: () => startServiceProcess("gateway", envOf([{ name: "two", ...setting }])),
    async endGateways() {
      await gateways.disposeAsync();
      await home.parts.gateway[Symbol.asyncDispose]();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
