import { join, resolve } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings, natsHosts, natsSettings } from "@tapedeck/shared/service/nats";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import type { NatsConnection } from "nats";
import { CommandError } from "../command-error.ts";
import type { RunningUp } from "../up/lock.ts";
import { natsUser } from "../up/own-servers.ts";

/** The NATS that `up` runs on a data folder, else the one that the settings name (`nats.url`), else none. */
export async function natsHere(
  running: RunningUp | undefined,
  read: SettingsReader,
  data: string,
): Promise<NatsSettings | undefined> {
  const own = running?.addresses.nats;
  if (own !== undefined) {
    const { natsPassword } = await loadSecrets(join(resolve(data), "secrets"));
    return { url: `nats://${own}`, user: natsUser, password: natsPassword };
  }
  return read.string("nats.url", undefined) === undefined ? undefined : natsSettings(read);
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
