import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostsSetting } from "./common-settings.ts";
import { hostName, isAllowedHost } from "./host-names.ts";
import { Gauge, type Registry } from "./metrics.ts";
import type { SettingsReader } from "./settings.ts";

/** Returns or throws why the service can't serve now; undefined if it can. */
export type ReadinessCheck = () => string | undefined | Promise<string | undefined>;

/** Whether a service can serve; `checks` has "ok" or a reason by name. */
export type Readiness = { readonly ready: boolean; readonly checks: Readonly<Record<string, string>> };

/** Asks every check; "ok" or the reason, by name. */
export async function readinessOf(checks: Readonly<Record<string, ReadinessCheck>>): Promise<Readiness> {
  const answers = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, (await reasonOf(check)) ?? "ok"] as const),
  );
  return {
    ready: answers.every(([, answer]) => answer === "ok"),
    checks: Object.fromEntries(answers),
  };
}

async function reasonOf(check: ReadinessCheck): Promise<string | undefined> {
  try {
    return await check();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Each check of /readyz as a metric, for alerts. The checks are made when the metrics are read. */
export function reportReadiness(registry: Registry, readiness: () => Promise<Readiness>): void {
  new Gauge({
    name: "tapedeck_ready",
    help: "1 while this check of /readyz succeeds, else 0.",
    labelNames: ["check"],
    registers: [registry],
    async collect() {
      for (const [check, answer] of Object.entries((await readiness()).checks)) {
        this.set({ check }, answer === "ok" ? 1 : 0);
      }
    },
  });
}

/** Where a service reports its health. */
export type HealthAddress = {
  readonly host: string;
  readonly port: number;
  /** Names that `Host` may have beside loopback and `host` itself. */
  readonly hosts?: readonly string[];
};

/** Reads where the health server of a service listens. */
export function healthSettings(read: SettingsReader, service: "ingest" | "query", port: number): HealthAddress {
  return {
    host: read.string(`${service}.health.host`, "127.0.0.1", {
      description: `Where the health port of ${service} listens.`,
    }),
    port: read.port(`${service}.health.port`, port, {
      description: `HTTP of ${service} for operators: \`/healthz\`, \`/readyz\`, \`/metrics\`.`,
    }),
    hosts: hostsSetting(read),
  };
}

type Details = Readonly<Record<string, unknown>>;

/** The server of `/healthz`, `/readyz` and `/metrics`. */
export type HealthServer = AsyncDisposable & { readonly address: string; readonly port: number };

/**
 * /healthz (the process lives), /readyz (200 or 503 with reasons) and /metrics of a service, for requests that name this
 * machine or an allowed host.
 */
export async function startHealthServer(
  options: HealthAddress & {
    readonly checks: Readonly<Record<string, ReadinessCheck>>;
    readonly metrics: Registry;
    /** Information for operators although the service can serve; shown by /readyz if there is any. */
    readonly details?: () => Details | Promise<Details>;
  },
): Promise<HealthServer> {
  const { host, port, hosts = [], checks, metrics, details = () => ({}) } = options;
  const allowed = [...hosts, host.includes(":") ? `[${host}]` : host];
  const server = createServer((request, response) => {
    const answer = async (): Promise<[status: number, type: string, body: string]> => {
      if (!isAllowedHost(request.headers.host, allowed)) {
        return [403, "application/json", refusalOf(request.headers.host)];
      }
      switch (request.url?.split("?")[0]) {
        case "/healthz":
          return [200, "application/json", '{"status":"ok"}'];
        case "/readyz": {
          const readiness = await readinessOf(checks);
          const more = await details();
          const body = { ...readiness, ...(Object.keys(more).length > 0 && { details: more }) };
          return [readiness.ready ? 200 : 503, "application/json", JSON.stringify(body)];
        }
        case "/metrics":
          return [200, metrics.contentType, await metrics.metrics()];
        default:
          return [404, "application/json", '{"error":{"code":"not_found","message":"/healthz, /readyz, /metrics"}}'];
      }
    };
    answer().then(
      ([status, type, body]) => response.writeHead(status, { "content-type": type }).end(body),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => reject(listenError(cause, host, port)));
    server.listen(port, host, resolve);
  });
  reportReadiness(metrics, () => readinessOf(checks));
  const bound = (server.address() as AddressInfo).port;
  return {
    address: `${host}:${bound}`,
    port: bound,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refusalOf(host: string | undefined): string {
  const message = `Host "${hostName(host)}" is not allowed: add it to gateway.hosts (TAPEDECK_GATEWAY_HOSTS)`;
  return JSON.stringify({ error: { code: "forbidden", message } });
}

/** One sentence about a port that is not available. */
export function listenError(cause: NodeJS.ErrnoException, host: string, port: number): Error {
  if (cause.code === "EADDRINUSE") {
    return new Error(`port ${port} on ${host} is taken: stop what listens there, or choose another port`, { cause });
  }
  return new Error(`can't listen on ${host}:${port}: ${cause.message}`, { cause });
}
