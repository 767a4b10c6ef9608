import { openTokenStore } from "@tapedeck/shared/tokens/store";
import { makeToken, type Role, type TokenRecord } from "@tapedeck/shared/tokens/token";
import { connect } from "nats";
import { type SeededStack, startSeededStack } from "./seeded-stack.ts";

export type TestToken = {
  readonly text: string;
  readonly record: TokenRecord;
  readonly revoke: () => Promise<unknown>;
};

/** A stack without taps that requires tokens. */
export type TokenStack = AsyncDisposable & {
  readonly on: SeededStack;
  readonly token: (
    workspace: string,
    roles: readonly Role[],
    lifetimeMs?: number,
    /** Null: of none. Default: alice. */
    developer?: string | null,
  ) => Promise<TestToken>;
};

/** The settings of a gateway that requires tokens. Limits have tests of their own. */
export const withTokens = {
  TAPEDECK_AUTH: "tokens",
  TAPEDECK_LIMITS_REFUSALS_PER_MINUTE: "100000",
  TAPEDECK_LIMITS_REQUESTS_PER_SECOND: "100000",
};

export async function startTokenStack(env: Readonly<Record<string, string>> = {}): Promise<TokenStack> {
  await using cleanup = new AsyncDisposableStack();
  const on = cleanup.use(await startSeededStack({ ...env, ...withTokens }));
  const connection = cleanup.adopt(await connect({ servers: on.stack.parts.nats.url }), (nc) => nc.close());
  const store = await openTokenStore(connection);
  const owned = cleanup.move();
  return {
    on,
    async token(workspace, roles, lifetimeMs = 3_600_000, developer = "alice") {
      const name = `${roles.join(" and ")} of ${workspace}`;
      const made = makeToken({
        name,
        workspace,
        roles: [...roles],
        lifetimeMs,
        ...(developer !== null && { developer }),
      });
      await store.create(made);
      const { text, record } = made;
      return { text, record, revoke: () => store.revoke(record.id) };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The token as a header or gRPC metadata. */
export function bearing(text: string | undefined): Record<string, string> {
  return text === undefined ? {} : { authorization: `Bearer ${text}` };
}
