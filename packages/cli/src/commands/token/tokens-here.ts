import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { demoWorkspace, namePart } from "@tapedeck/shared/source";
import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type TokenRecord } from "@tapedeck/shared/tokens/token";
import { CommandError } from "../../command-error.ts";
import { auditDone, auditHere } from "../../maintain/audit-here.ts";
import { dialNats, findHere, noServerOn } from "../../maintain/here.ts";
import type { Tokens } from "./tokens.ts";

/**
 * Opens the tokens in the NATS that `up` runs on a data folder, or in the one that the settings name (`nats.url`). The first
 * token is made this way; with it an admin can make others from elsewhere.
 * @throws CommandError when there is neither, or it can't be reached
 */
export async function openTokensHere(data: string, env: NodeJS.ProcessEnv): Promise<Tokens> {
  const here = await findHere(data, env);
  const nats = await here.nats();
  if (nats === undefined) throw noServerOn(data, "its NATS (TAPEDECK_NATS_URL)", "its HTTP address (--url)");
  await using stack = new AsyncDisposableStack();
  const connection = stack.adopt(await dialNats(nats), (nc) => nc.close());
  const store = await openTokenStore(connection);
  const read = here.settings();
  const defaultWorkspace =
    here.running?.mode === "demo" ? demoWorkspace : namePart(read.string("workspace", "default"));
  const needsToken = read.string("auth", "none") === "tokens";
  const audited = (action: "token.created" | "token.revoked", { workspace, ...record }: TokenRecord) => {
    const { id, name, roles, expiresAt } = record;
    return auditDone(auditHere(connection, { action, workspace, about: { id, name, roles, expiresAt } }));
  };
  const owned = stack.move();
  return {
    async create({ expires, developer, workspace = defaultWorkspace, ...wishes }) {
      const lifetimeMs = durationMs(expires);
      if (lifetimeMs === undefined) throw new CommandError(`--expires: "${expires}" is not ${durationForm}.`);
      const made = understood(() =>
        makeToken({
          ...wishes,
          roles: [...wishes.roles],
          workspace: namePart(workspace),
          lifetimeMs,
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
    ...(!needsToken && { remark: "Tokens are not required until auth: tokens is set (TAPEDECK_AUTH=tokens)." }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function understood<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    if (cause instanceof RangeError) throw new CommandError(`${cause.message}.`, { cause });
    throw cause;
  }
}
