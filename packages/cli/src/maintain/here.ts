import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { commandToStart } from "@tapedeck/shared/installation";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings, natsHosts, natsSettings } from "@tapedeck/shared/service/nats";
import { loadSettingsFile, type SettingsReader, settingsReader } from "@tapedeck/shared/service/settings";
import type { NatsConnection } from "nats";
import { CommandError } from "../command-error.ts";
import { type RunningUp, runningUp } from "../local-server/lock.ts";
import { natsUser, ownerUrl } from "../local-server/own-servers.ts";

/** The servers of this machine's Tapedeck: those that `up` runs on a data folder, else those that the settings name. */
export type Here = {
  /** The `up` that runs on the data folder. */
  readonly running: RunningUp | undefined;
  /** Reads the settings that `up` was started with, else those of the working folder. */
  readonly settings: () => SettingsReader;
  /** Undefined where there is none. @throws SettingsError */
  readonly nats: () => Promise<NatsSettings | undefined>;
  /** The database's address as its owner; undefined where there is none. */
  readonly databaseUrl: () => Promise<string | undefined>;
};

/** `data`: the data folder. Servers are not dialled. */
export async function findHere(data: string, env: NodeJS.ProcessEnv = process.env): Promise<Here> {
  const dataDir = resolve(data);
  const running = await runningUp(dataDir);
  const { nats: ownNats, postgres: ownPostgres } = running?.addresses ?? {};
  const secrets = () => loadSecrets(join(dataDir, "secrets"));
  const settings = () => {
    const defaultFile = existsSync("tapedeck.yaml") ? "tapedeck.yaml" : undefined;
    const path = env.TAPEDECK_CONFIG || (running === undefined ? defaultFile : running.configFile);
    return settingsReader({ env, file: path === undefined ? undefined : loadSettingsFile(path) });
  };
  return {
    running,
    settings,
    async nats() {
      // The password stands apart: the client takes a port out of some passwords in an address.
      if (ownNats !== undefined)
        return { url: `nats://${ownNats}`, user: natsUser, password: (await secrets()).natsPassword };
      const read = settings();
      const nats = read.string("nats.url", undefined) === undefined ? undefined : natsSettings(read);
      read.assertValid();
      return nats;
    },
    async databaseUrl() {
      if (ownPostgres !== undefined) return ownerUrl(ownPostgres, await secrets());
      return settings().string("postgres.url", undefined);
    },
  };
}

export type RunningHere = AsyncDisposable & {
  readonly running: RunningUp;
  readonly nats: NatsConnection;
  /** The key by which its services know each other. */
  readonly servicesKey: string;
};

/**
 * The `up` that runs on a data folder, with a connection to its NATS.
 * @throws CommandError when none runs there, or one with a NATS of the user's
 */
export async function dialRunning(data: string): Promise<RunningHere> {
  const running = await runningUp(resolve(data));
  if (running?.addresses.http === undefined) throw noServerOn(data);
  const { nats: address } = running.addresses;
  if (address === undefined) {
    throw new CommandError(
      "this Tapedeck server does not run its own NATS: the command works only where `up` started it, or with --url.",
    );
  }
  const { servicesKey, natsPassword } = await loadSecrets(join(resolve(data), "secrets"));
  const nats = await dialNats({ url: `nats://${address}`, user: natsUser, password: natsPassword });
  return { running, nats, servicesKey, [Symbol.asyncDispose]: () => nats.close() };
}

/** `orGive`: other ways to say where the server is, such as "its Postgres (TAPEDECK_POSTGRES_URL)". */
export function noServerOn(data: string, ...orGive: readonly string[]): CommandError {
  const ways = ["its data folder (--data)", ...orGive];
  const last = ways.pop();
  const alternatives = ways.length === 0 ? last : `${ways.join(", ")} or ${last}`;
  return new CommandError(
    `no Tapedeck server runs on ${data}: start it with \`${commandToStart()}\`, or give ${alternatives}.`,
  );
}

/** @throws CommandError when it can't be reached */
export async function dialNats(settings: NatsSettings): Promise<NatsConnection> {
  try {
    return await connectNats("cli", settings, silentLogger);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`NATS at ${natsHosts(settings.url)} can't be reached (${why}).`, { cause });
  }
}
