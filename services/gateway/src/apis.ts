import type { LogReader } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { type MaintainApi, maintainApi } from "./apis/maintain/maintain-api.ts";
import { type RecorderRelay, recorderRelay } from "./apis/recorder/relay.ts";
import type { RktApi } from "./apis/rkt/methods.ts";
import { rktApi } from "./apis/rkt/rkt-api.ts";
import { type SkaffoldApi, skaffoldApi } from "./apis/skaffold/skaffold-api.ts";
import { type TapedeckApi, tapedeckApi } from "./apis/tapedeck/tapedeck-api.ts";
import type { VagrantApi } from "./apis/vagrant/methods.ts";
import { vagrantApi } from "./apis/vagrant/vagrant-api.ts";
import { type TokenApi, tokenApi } from "./auth/token-api.ts";
import type { GatewayConfig } from "./config.ts";
import { controlClient } from "./control-client.ts";
import type { CallerLimits } from "./limits/limits.ts";
import type { LogLink } from "./log-link.ts";
import { maintainClient } from "./maintain-client.ts";
import type { GatewayMetrics } from "./metrics.ts";
import { positions } from "./positions.ts";
import type { QueryClient } from "./query-client.ts";

/** Everything that the transports serve. */
export type GatewayApis = {
  readonly skaffold: SkaffoldApi;
  readonly rkt: RktApi;
  readonly vagrant: VagrantApi;
  readonly tapedeck: TapedeckApi;
  readonly tokens: TokenApi;
  readonly maintain: MaintainApi;
  readonly relay: RecorderRelay;
};

export type GatewayApisDeps = {
  readonly config: GatewayConfig;
  readonly link: LogLink;
  readonly query: QueryClient;
  readonly limits: CallerLimits;
  readonly metrics: GatewayMetrics;
  readonly logger: Logger;
  /** Owns the connections that are made here. */
  readonly stack: AsyncDisposableStack;
};

export function gatewayApis({ config, link, query, limits, metrics, logger, stack }: GatewayApisDeps): GatewayApis {
  const log = (): LogReader => metrics.counted(link.reader());
  const record = { query, log, positions: positions(log) };
  const upstream = { ...record, control: controlClient(link.nats), refused: metrics.refused };
  const { largeAnswers } = limits;
  return {
    skaffold: skaffoldApi(upstream),
    rkt: rktApi({ ...record, largeAnswers }),
    vagrant: vagrantApi({ ...upstream, largeAnswers }),
    tapedeck: tapedeckApi({ ...record, ...limits }),
    tokens: tokenApi({
      store: async () => openTokenStore(link.nats().connection),
      audit: (audit, { id, name, workspace, roles }, { who }) => {
        logger.info({ audit, id, name, workspace, roles, who }, audit);
      },
    }),
    maintain: maintainApi({
      query,
      services: stack.use(maintainClient(config, config.servicesKey)),
      nats: link.nats,
      audit: (audit, { who, workspace, token }, about) => {
        logger.info({ audit, who, workspace, token, ...about }, audit);
      },
    }),
    relay: stack.use(recorderRelay(config.ingest, config.servicesKey)),
  };
}
