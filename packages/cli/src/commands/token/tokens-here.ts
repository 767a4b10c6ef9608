import { join, resolve } from "node:path";
import { loadSecrets } from "@tapedeck/infra/local/secrets";
import { commandToStart } from "@tapedeck/shared/installation";
import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings, natsHosts, natsSettings } from "@tapedeck/shared/service/nats";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import { demoWorkspace, namePart } from "@tapedeck/shared/source";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type TokenRecord } from "@tapedeck/shared/tokens/token";
import { CommandError } from "../../command-error.ts";
import { auditHere } from "../../maintain/audit-here.ts";
import { settingsHere } from "../../maintain/settings-here.ts";
import { type RunningUp, runningUp } from "../../up/lock.ts";
import { natsUser } from "../../up/own-servers.ts";
import type { Tokens } from "./tokens.ts";

/**
 * Opens the tokens in the NATS that `up` runs on a data folder, or in the one that the settings name (`nats.url`). So is the
 * first token made, with which an admin can make others from elsewhere.
 * @throws CommandError when there is neither, or it can't be reached
 */
export async function openTokensHere(data: string, env: NodeJS.ProcessEnv): Promise<Tokens> {
  const dataDir = resolve(data);
  const running = await runningUp(dataDir);
  const read = settingsHere(running, env);
  const nats = await natsOf(running, read, { data, dataDir });
  await using stack = new AsyncDisposableStack();
  const connection = stack.adopt(await dial(nats), (nc) => nc.close());
  const store = await openTokenStore(connection);
  const usualWorkspace = running?.mode === "demo" ? demoWorkspace : namePart(read.string("workspace", "default"));
  const isAsked = read.string("auth", "none") === "tokens";
  const audited = (action: "token.created" | "token.revoked", { workspace, ...record }: TokenRecord) => {
    const { id, name, roles, expiresAt } = record;
    return auditHere(connection, { action, workspace, about: { id, name, roles, expiresAt } });
  };
  const owned = stack.move();
  return {
    async create({ expires, developer, workspace = usualWorkspace, ...wishes }) {
      const lifetimeMs = durationMs(expires);
      if (lifetimeMs === undefined) throw new CommandError(`--expires: "${expires}" is not ${durationForm}.`);
      const made = understood(() =>
        makeToken({
          ...wishes,
          roles: [...wishes.roles],
          ...{ workspace: namePart(workspace), lifetimeMs },
          ...(developer !== undefined && { developer: namePart(developer) }),
        }),
      );
      await store.create(made);
      await audited("token.created", made.record);
      return { ...made.record, token: made.text };
    },
    list: () => store.list(),
    async revoke(id) {
      const revoked = await store.revoke(id);
      if (revoked === undefined) throw new CommandError(`there is no token ${id}: see \`tapedeck token list\`.`);
      await audited("token.revoked", revoked);
      return revoked;
    },
    ...(!isAsked && { remark: "Tokens are not required until auth: tokens is set (TAPEDECK_AUTH=tokens)." }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function natsOf(
  running: RunningUp | undefined,
  read: SettingsReader,
  { data, dataDir }: { readonly data: string; readonly dataDir: string },
): Promise<NatsSettings> {
  const own = running?.addresses.nats;
  if (own !== undefined) {
    const { natsPassword } = await loadSecrets(join(dataDir, "secrets"));
    return { url: `nats://${own}`, user: natsUser, password: natsPassword };
  }
  if (read.string("nats.url", undefined) !== undefined) return natsSettings(read);
  throw new CommandError(
    `no Tapedeck server runs on ${data}: start it with \`${commandToStart()}\`, or give its data folder (--data), its NATS (TAPEDECK_NATS_URL) or its HTTP address (--url).`,
  );
}

async function dial(nats: NatsSettings) {
  try {
    return await connectNats("cli", nats, silentLogger);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError(`NATS at ${natsHosts(nats.url)} can't be reached (${why}).`, { cause });
  }
}

function understood<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    if (cause instanceof RangeError) throw new CommandError(`${cause.message}.`, { cause });
    throw cause;
  }
}
