import { connect, type NatsConnection } from "nats";
import type { Logger } from "./logger.ts";
import type { SettingsReader } from "./settings.ts";

export type NatsSettings = {
  readonly url: string;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** The server is known to sync every message to disk; it can't be asked. */
  readonly syncAlways?: boolean | undefined;
  /** Where the server keeps its data, where that is on this machine: tells when the disk is full. */
  readonly storeDir?: string | undefined;
};

/** The same for every service. */
export function natsSettings(read: SettingsReader): NatsSettings {
  return {
    url: read.string("nats.url", "nats://127.0.0.1:7042", {
      description:
        "A NATS server of yours: 2.12 or newer, with JetStream and `sync_interval: always`. Without it `tapedeck up` starts the bundled NATS.",
    }),
    user: read.string("nats.user", undefined, { description: "The user as which the services log in to your NATS." }),
    password: read.string("nats.password", undefined, { description: "The password of that user." }),
    storeDir: read.string("nats.storeDir", undefined, {
      defaultText: "none; set for the bundled NATS",
      description:
        "The folder in which your NATS keeps its data, if it is on ingest's machine. Ingest uses it to recognize a full disk.",
    }),
    syncAlways: read.boolean("nats.syncAlways", false, {
      description:
        "`true` says that your NATS syncs every message to disk. The services cannot query this, so they warn until you set it.",
    }),
  };
}

/**
 * Rejects when the server is away or refuses us, so that the caller can say so before it tries again. Once there, the
 * connection comes back by itself for ever, from refusals too.
 */
export async function connectNats(name: string, settings: NatsSettings, log: Logger): Promise<NatsConnection> {
  const { url, user, password } = settings;
  const nats = await connect({
    servers: url,
    name,
    ...(user !== undefined && { user }),
    ...(password !== undefined && { pass: password }),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    // Else the connection is closed for good when the server has refused it twice.
    ignoreAuthErrorAbort: true,
    pingInterval: 10_000,
    timeout: 5_000,
    // Else every request makes two errors with their stacks, in case that it fails.
    noAsyncTraces: true,
  });
  const watch = async () => {
    for await (const { type } of nats.status()) {
      if (type === "disconnect" || type === "reconnect") log.warn({ url, status: type }, "nats");
    }
  };
  watch().catch((error: unknown) => log.error({ err: error }, "nats status"));
  return nats;
}
