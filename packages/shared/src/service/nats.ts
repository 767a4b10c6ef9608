import { type ConnectionOptions, connect, createInbox, type NatsConnection } from "nats";
import { type LogSettingsEntry, logSettings } from "../log/workspaces/log-settings.ts";
import { DialTimeout } from "../sync/dial-timeout.ts";
import type { Logger } from "./logger.ts";
import type { SettingsReader } from "./settings.ts";

/** How NATS is reached. */
export type NatsSettings = {
  /** One server, or several of a cluster with commas between. */
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** PEM file of the authorities that the server's certificate may come from. Read at each dial. */
  readonly ca?: string | undefined;
  /** The server is known to sync every message to disk; it can't be asked. */
  readonly syncAlways?: boolean | undefined;
  /** The server's data folder, if it is on this machine: used to detect a full disk. */
  readonly storeDir?: string | undefined;
  /** How many servers of a cluster keep each stream. A stream that has more keeps them. Default 1. */
  readonly replicas?: number | undefined;
  /** Logs of some workspaces that differ from the others. */
  readonly logs?: readonly LogSettingsEntry[] | undefined;
};

/** The same for every service. */
export function natsSettings(read: SettingsReader): NatsSettings {
  return {
    url: read.string("nats.url", "nats://127.0.0.1:7042", {
      description:
        "A NATS of yours: 2.12 or newer, with JetStream and `sync_interval: always`; all servers of a [cluster](cluster.md), separated by commas. Without it `tapedeck up` starts the bundled NATS.",
    }),
    user: read.string("nats.user", undefined, {
      description:
        "The services' user in your NATS. Each service may have its own ([users of NATS](operations.md#users-of-nats)).",
    }),
    password: read.string("nats.password", undefined, { description: "The password of that user." }),
    ca: read.string("nats.ca", undefined, {
      defaultText: "none: the authorities that Node.js trusts",
      description:
        "PEM file of the authority of NATS's certificate. With it, or with `tls://` in `nats.url`, a NATS without TLS is refused.",
    }),
    storeDir: read.string("nats.storeDir", undefined, {
      defaultText: "none; set for the bundled NATS",
      description: "Your NATS's data folder, if it is on ingest's machine. Ingest uses it to recognize a full disk.",
    }),
    syncAlways: read.boolean("nats.syncAlways", false, {
      description: "Your NATS syncs every message to disk. The services can't query that, and warn until you set it.",
    }),
    replicas: read.integer("nats.replicas", 1, {
      min: 1,
      max: 5,
      description:
        "How many servers of a [cluster](cluster.md) keep the log: 3 survives the loss of one. A log with fewer gets them when a service starts.",
    }),
    logs: logSettings(read),
  };
}

/** The prefix of a connection's inboxes, if it is not NATS's usual `_INBOX`. */
const inboxPrefixes = new WeakMap<NatsConnection, string>();

/**
 * A new subject for answers to this connection alone: `_INBOX.<name of the connection>.<random>`. So a user of a service may
 * be allowed its own answers, and not those of the other services.
 */
export function newInbox(nats: NatsConnection): string {
  return createInbox(inboxPrefixes.get(nats));
}

/** The servers that `nats.url` names. */
export function natsServers(url: string): string[] {
  return url
    .split(",")
    .map((server) => server.trim())
    .filter((server) => server !== "");
}

/** Their hosts and ports, for messages: a URL may have a password. */
export function natsHosts(url: string): string {
  return natsServers(url)
    .map((server) => server.replace(/^.*:\/\//, "").replace(/^.*@/, ""))
    .join(", ");
}

/**
 * Rejects when the server is away or refuses the connection, so that the caller can report it before the next try. Once
 * established, the connection always comes back by itself, after refusals too.
 */
export async function connectNats(
  name: string,
  settings: NatsSettings,
  log: Logger,
  dial = new DialTimeout(natsServers(settings.url).length),
): Promise<NatsConnection> {
  const { url, user, password, ca } = settings;
  const inboxPrefix = `_INBOX.${name}`;
  const since = performance.now();
  const nats = await connect({
    servers: natsServers(url),
    name,
    inboxPrefix,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { pass: password }),
    // Without it a server that speaks no TLS is talked to without.
    ...((ca !== undefined || /\btls:/i.test(url)) && { tls: ca === undefined ? {} : { caFile: ca } }),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    // Else the connection is closed for good when the server has refused it twice.
    ignoreAuthErrorAbort: true,
    pingInterval: 10_000,
    timeout: dial.ms,
    // Else every request makes two errors with their stacks, in case that it fails.
    noAsyncTraces: true,
  }).catch((cause: Error) => {
    dial.failedAfter(performance.now() - since);
    throw isUntrusted(cause) ? new UntrustedNatsError(natsHosts(url), cause) : cause;
  });
  inboxPrefixes.set(nats, inboxPrefix);
  dial.succeeded();
  void followDials(nats, dial);
  const watch = async () => {
    for await (const { type } of nats.status()) {
      if (type === "disconnect" || type === "reconnect") log.warn({ url: natsHosts(url), status: type }, "nats");
    }
  };
  watch().catch((error: unknown) => log.error({ err: error }, "nats status"));
  return nats;
}

/** Gives the library's next dial the time that those before it show to be needed. It reads its options at each. */
async function followDials(nats: NatsConnection, dial: DialTimeout): Promise<void> {
  const { options } = nats as NatsConnection & { readonly options: ConnectionOptions };
  let since: number | undefined;
  for await (const { type } of nats.status()) {
    if (type === "reconnecting") {
      if (since !== undefined) dial.failedAfter(performance.now() - since);
      since = performance.now();
    } else if (type === "reconnect") {
      dial.succeeded();
      since = undefined;
    }
    options.timeout = dial.ms;
  }
}

/** The certificate of the server is not one to trust. */
class UntrustedNatsError extends Error {
  override readonly name = "UntrustedNatsError";
  constructor(url: string, cause: Error) {
    super(
      `the certificate of the nats-server at ${url} is not trusted (${cause.message}): name its authority in nats.ca`,
      {
        cause,
      },
    );
  }
}

/** Node's errors about certificates have codes such as SELF_SIGNED_CERT_IN_CHAIN, or ERR_TLS_CERT_ALTNAME_INVALID. */
function isUntrusted(error: Error): boolean {
  const causes = [error, error.cause].filter((one) => one instanceof Error && "code" in one) as NodeJS.ErrnoException[];
  return causes.some(({ code }) => /CERT|ISSUER|SIGNATURE/.test(String(code)));
}
