import type { ChannelCredentials } from "@grpc/grpc-js";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { Registry } from "@tapedeck/shared/service/metrics";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { type MaintainApi, maintainApi } from "./apis/maintain/maintain-api.ts";
import { type RecorderRelay, recorderRelay } from "./apis/recorder/relay.ts";
import { rktApi } from "./apis/rkt/rkt-api.ts";
import { skaffoldApi } from "./apis/skaffold/skaffold-api.ts";
import { auditedExports } from "./apis/tapedeck/exports.ts";
import { tapedeckApi } from "./apis/tapedeck/tapedeck-api.ts";
import { vagrantApi } from "./apis/vagrant/vagrant-api.ts";
import { type AuditApi, auditApi } from "./audit/audit-api.ts";
import { type AuditLog, auditedCaller } from "./audit/audit-log.ts";
import { type TokenApi, tokenApi } from "./auth/token-api.ts";
import type { GatewayConfig } from "./config.ts";
import { type ControlClient, controlClient } from "./control-client.ts";
import type { CallerLimits } from "./limits/limits.ts";
import type { LogLink } from "./log-link.ts";
import type { MaintainClient } from "./maintain-client.ts";
import type { GatewayMetrics } from "./metrics.ts";
import { positions } from "./positions.ts";
import { type ViewerApis, viewerApis } from "./privacy/own-apis.ts";
import { ownPart, type RecordedPart } from "./privacy/own-part.ts";
import type { Privacy } from "./privacy/settings.ts";
import type { QueryClient } from "./query-client.ts";
import type { SinkTimes } from "./sinks/delivery/times.ts";
import { openSinks } from "./sinks/open-sinks.ts";
import type { SinksApi } from "./sinks/sinks-api.ts";
import { RecentAnswers } from "./states/recent-answers.ts";
import { repeatedStates } from "./states/repeated-states.ts";
import { type StreamClient, streamClient } from "./stream-client.ts";
import { type RecordApis, routedApis } from "./workspaces/routed-apis.ts";
import type { WorkspaceLog } from "./workspaces/used-workspace.ts";
import { Workspaces } from "./workspaces/workspaces.ts";

/** Everything that the transports serve. */
export type GatewayApis = RecordApis & {
  readonly tokens: TokenApi;
  readonly maintain: MaintainApi;
  readonly audit: AuditApi;
  readonly relay: RecorderRelay;
  readonly sinks: SinksApi;
};

export type GatewayApisDeps = {
  /** Addresses of query and ingest. */
  readonly config: Pick<GatewayConfig, "query" | "ingest" | "servicesKey" | "privacy" | "sinks">;
  /** The credentials for dialling query and ingest. */
  readonly channel: ChannelCredentials;
  readonly link: LogLink;
  readonly query: QueryClient;
  readonly services: MaintainClient;
  readonly limits: CallerLimits;
  readonly metrics: GatewayMetrics;
  readonly auditLog: AuditLog;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly sinkTimes: Partial<SinkTimes> | undefined;
  /** Owns the connections that are made here. */
  readonly stack: AsyncDisposableStack;
};

/** The APIs, and the workspaces that are in use. */
export function gatewayApis(deps: GatewayApisDeps): {
  readonly apis: GatewayApis;
  readonly workspaces: Workspaces<ViewerApis>;
} {
  const { config, channel, link, query, services, metrics, auditLog, logger, stack } = deps;
  const { record: audit } = auditLog;
  const { counted } = metrics;
  const workspaces = stack.use(new Workspaces({ link, counted, logger, apisOf: workspaceApis(deps) }));
  const apis: GatewayApis = {
    ...routedApis(async (caller) => (await workspaces.apisOf(caller.workspace))(caller)),
    audit: auditApi(() => auditLog.store()),
    tokens: tokenApi({
      store: async () => openTokenStore(link.nats().connection),
      audit: (what, { id, name, workspace, roles, expiresAt }, caller) => {
        logger.info({ audit: what, id, name, workspace, roles, who: caller.who, kind: caller.kind }, what);
        const about = { id, name, roles, expiresAt };
        audit({ action: tokenActions[what], ...auditedCaller(caller), workspace, about });
      },
    }),
    maintain: maintainApi({
      query,
      services,
      nats: link.nats,
      workspaces: () => link.logs().names(),
      auditStore: () => auditLog.store(),
      tokens: async () => (await openTokenStore(link.nats().connection)).list(),
      audit: (what, caller, about) => {
        const { who, kind, workspace, token } = caller;
        logger.info({ audit: what, who, kind, workspace, token, ...about }, what);
        audit({ action: maintainActions[what], ...auditedCaller(caller), workspace, about });
      },
    }),
    relay: stack.use(recorderRelay(config.ingest, config.servicesKey, channel)),
    sinks: openSinks({
      settings: config.sinks,
      developers: config.privacy.developers,
      link,
      logOf: workspaces.logOf,
      query,
      audit,
      registry: deps.registry,
      logger,
      times: deps.sinkTimes,
      stack,
    }),
  };
  return { apis, workspaces };
}

/** An answer is repeated for a bounded time because a rebuild may change the tables, but not the log. */
const repeated = { maxBytes: 8 * 1024 * 1024, maxAgeMs: 10_000 };

/** Makes the APIs on the log of one workspace. */
function workspaceApis(deps: GatewayApisDeps): (of: WorkspaceLog) => ViewerApis {
  const { config, link, query, services, limits, metrics, auditLog } = deps;
  const control = controlClient(link.nats);
  const streams = streamClient(link.nats, control);
  const upstream = { control, streams, refused: metrics.refused, audit: auditLog.record };
  const { developers, compareDevelopers } = config.privacy;
  const answers = new RecentAnswers(repeated);
  return ({ workspace, log, holes }) => {
    const isRemoved = (epoch: string) => link.workspaces().removalOf(workspace)?.epochs.includes(epoch) ?? false;
    const record = { query: repeatedStates({ query, log, answers, isRemoved }), log, holes, services };
    const all = recordApis({ ...upstream, ...limits, ...record, compareDevelopers });
    // There is nobody else to compare with.
    const ownApis = (developer: string) =>
      recordApis({ ...upstream, ...limits, ...ownPart(record, developer), compareDevelopers: true });
    return viewerApis(all, ownApis, developers);
  };
}

type RecordApisDeps = RecordedPart &
  Pick<Privacy, "compareDevelopers"> &
  CallerLimits & {
    readonly control: ControlClient;
    readonly streams: StreamClient;
    readonly refused: GatewayMetrics["refused"];
    readonly audit: AuditLog["record"];
  };

/** The APIs over all that is recorded, or over a part of it. */
function recordApis(deps: RecordApisDeps): RecordApis {
  const read = { ...deps, positions: positions(deps.log) };
  return {
    skaffold: skaffoldApi(read),
    rkt: rktApi(read),
    vagrant: vagrantApi(read),
    tapedeck: auditedExports(tapedeckApi(read), deps.audit),
  };
}

const tokenActions = {
  "token created": "token.created",
  "token revoked": "token.revoked",
  "token renewed": "token.renewed",
} as const;

const maintainActions = {
  "tables rebuilt": "tables.rebuilt",
  "log backed up": "log.backed-up",
} as const;
