import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { LogReplacedError } from "@tapedeck/shared/log/log";
import { logStart, mayHoldEvents } from "@tapedeck/shared/log/offset";
import { workspaceFilter } from "@tapedeck/shared/log/subjects";
import type { Readiness } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { GatewayApis } from "../apis.ts";
import { type AuditLog, auditedCaller } from "../audit/audit-log.ts";
import type { Authenticator } from "../auth/authenticator.ts";
import type { Caller } from "../call-context.ts";
import type { GatewayConfig } from "../config.ts";
import type { LogLink } from "../log-link.ts";
import { continueMoves } from "./moving/continue-moves.ts";
import { MoveTurns } from "./moving/move-turns.ts";
import { MovesEntry, type UnfinishedMove } from "./moving/moves-entry.ts";
import { homeShard } from "./settings.ts";
import { severalShards } from "./several-shards.ts";
import { type OpenShard, openShard, type Shard } from "./shard.ts";
import { ShardMap } from "./shard-map.ts";
import { shardedApis } from "./sharded-apis.ts";

/** Home first. Without the setting `shards` there is no other. */
export type Shards = readonly [home: Shard, ...others: Shard[]];

/** `link`: the connection to home's log. */
export type OpenShards = Omit<OpenShard, "shard" | "servicesKey" | "link"> & {
  readonly config: GatewayConfig;
  readonly link: LogLink;
};

export function openShards({ config, link, ...parts }: OpenShards): Shards {
  const { servicesKey, nats, query, ingest } = config;
  const home = openShard({ ...parts, shard: { name: homeShard, nats, query, ingest }, servicesKey, link });
  return [home, ...config.shards.map((shard) => openShard({ ...parts, shard, servicesKey }))];
}

/** What the transports serve: home's own APIs, or with several shards those of each caller's workspace. */
export type Served = {
  readonly apis: GatewayApis;
  /** Calls end when their workspace is moved. */
  readonly whileInPlace: (authenticate: Authenticator) => Authenticator;
};

export type ServeShards = {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly auditLog: Pick<AuditLog, "record">;
  readonly signal: AbortSignal;
  /** Owns what is opened here. */
  readonly stack: AsyncDisposableStack;
};

export function serveShards(shards: Shards, { config, logger, auditLog, signal, stack }: ServeShards): Served {
  const [home, ...others] = shards;
  if (others.length === 0) return { apis: home.apis, whileInPlace: (authenticate) => authenticate };
  const byName = new Map(shards.map((shard) => [shard.name, shard]));
  const named = (name: string) => {
    const shard = byName.get(name);
    if (shard === undefined) throw new Error(`there is no shard ${name}`);
    return shard;
  };
  const map = new ShardMap({
    shards: config.shards,
    homeWorkspace: config.workspace,
    nats: home.link.nats,
    warn: (message) => logger.warn(message),
    async holds(name, workspace) {
      const { link } = named(name);
      return mayHoldEvents(logStart, await link.reader().lastMatch([workspaceFilter(workspace)]));
    },
  });
  const to = async (workspace: string) => named(await map.of(workspace)).apis;
  void map.watch(signal);
  const turns = stack.use(new MoveTurns(new MovesEntry(home.link.nats)));
  const moving = {
    shards,
    map,
    turns,
    closing: signal,
    failedAlone(workspace: string, err: unknown) {
      const text = `the move of the workspace "${workspace}" was interrupted, and is retried: recording in it may be paused until then`;
      logger.error({ err, workspace }, text);
    },
    audit(caller: Pick<Caller, "who" | "kind" | "token">, workspace: string, about: AuditEntry["about"]) {
      const { who, kind, token } = caller;
      logger.info({ audit: "workspace moved", who, kind, token, workspace, ...about }, "workspace moved");
      const action = "workspace.moved";
      auditLog.record({ action, ...auditedCaller(caller), workspace, about });
    },
    continued: ({ workspace, ...move }: UnfinishedMove) =>
      logger.info({ workspace, ...move }, "a move whose gateway had stopped is finished"),
  };
  void continueMoves(moving);
  const api = severalShards({ ...moving, homeWorkspace: config.workspace });
  return {
    apis: shardedApis([home.apis, ...others.map(({ apis }) => apis)], to, api),
    whileInPlace: (authenticate) => async (credentials) => {
      const caller = await authenticate(credentials);
      const stay = map.stay(caller.workspace);
      const { revoked } = caller;
      return {
        ...caller,
        revoked: revoked === undefined ? stay : AbortSignal.any([stay, revoked]),
        permitted: revoked,
      };
    },
  };
}

/** Ready when home is: what another shard lacks is a check of its own, and concerns its workspaces alone. */
export async function readinessOfAll([home, ...others]: Shards): Promise<Readiness> {
  const [own, ...checks] = await Promise.all([home.readiness(), ...others.map(checkOf)]);
  return { ready: own.ready, checks: { ...own.checks, ...Object.fromEntries(checks) } };
}

async function checkOf({ name, readiness }: Shard): Promise<readonly [name: string, answer: string]> {
  const { checks } = await readiness();
  const failed = Object.entries(checks).find(([, answer]) => answer !== "ok");
  return [`shard ${name}`, failed === undefined ? "ok" : failed.join(": ")];
}

/**
 * Rejects when home fails for good, or when the log of any shard was replaced: a gateway has to restart to serve that.
 * Other failures of a shard concern its workspaces alone: they are logged, and `/readyz` reports them.
 */
export function failureOf([home, ...others]: Shards, logger: Logger): Promise<never> {
  const failures = others.map(({ name, link }) =>
    link.failed.catch((cause: Error) => {
      const message = `shard ${name}: ${cause.message}`;
      if (cause.cause instanceof LogReplacedError) throw new Error(message, { cause });
      logger.error({ err: cause }, `${message}. Restart the gateway to serve its workspaces again`);
      return new Promise<never>(() => {});
    }),
  );
  const failed = Promise.race([home.link.failed, ...failures]);
  failed.catch(() => {}); // a failure that is not awaited is not an unhandled rejection
  return failed;
}
