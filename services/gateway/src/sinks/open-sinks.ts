import type { LogReader } from "@tapedeck/shared/log/log";
import type { DeveloperVisibility } from "@tapedeck/shared/service/common-settings";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { Registry } from "@tapedeck/shared/service/metrics";
import { type AuditLog, auditedCaller } from "../audit/audit-log.ts";
import type { LogLink } from "../log-link.ts";
import type { QueryClient } from "../query-client.ts";
import { causeReader } from "./causes.ts";
import type { SinkTimes } from "./delivery/times.ts";
import type { SinkSettings } from "./settings.ts";
import { sinkMetrics } from "./sink-metrics.ts";
import { Sinks } from "./sinks.ts";
import { type SinksApi, sinksApi } from "./sinks-api.ts";

export type OpenSinksDeps = {
  readonly settings: SinkSettings;
  readonly developers: DeveloperVisibility;
  readonly link: LogLink;
  readonly logOf: (workspace: string) => Promise<LogReader>;
  readonly query: Pick<QueryClient, "listOperations">;
  readonly audit: AuditLog["record"];
  readonly registry: Registry;
  readonly logger: Logger;
  readonly times?: Partial<SinkTimes> | undefined;
  /** Owns the sinks. */
  readonly stack: AsyncDisposableStack;
};

/** Delivers the sinks, and serves their API. */
export function openSinks(deps: OpenSinksDeps): SinksApi {
  const { settings, developers, link, logOf, query, audit, registry, logger, times, stack } = deps;
  const counts = sinkMetrics(registry, () => sinks.running);
  const causeOf = causeReader(query);
  let doubt = settings.pageDoubt;
  const logOfSink = (workspace: string) => {
    // Once, and only where there is a sink.
    if (doubt !== undefined) logger.warn(doubt);
    doubt = undefined;
    return logOf(workspace);
  };
  const sinks = stack.use(new Sinks({ settings, link, logOf: logOfSink, counts, causeOf, logger, times }));
  return sinksApi({
    sinks,
    logOf,
    settings,
    causeOf,
    developers,
    audit: (action, caller, about) => {
      const { who, kind, workspace, token } = caller;
      logger.info({ audit: action, who, kind, workspace, token, ...about }, action);
      audit({ action, ...auditedCaller(caller), workspace, about });
    },
  });
}
