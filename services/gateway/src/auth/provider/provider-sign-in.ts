import type { Logger } from "@tapedeck/shared/service/logger";
import type { SignInAudit } from "../../audit/sign-in-audit.ts";
import type { Authenticator } from "../authenticator.ts";
import { Deadlines } from "./deadlines.ts";
import { IdentityProvider, type IdentityProviderOptions } from "./identity-provider.ts";
import { pageSessions, startedSignIns } from "./page-session.ts";
import { type PageSignIn, pageSignIn } from "./page-sign-in.ts";
import { providerAuthenticator } from "./provider-authenticator.ts";
import type { ProviderSettings } from "./settings.ts";

/** The gateway's parts for an identity provider. */
export type ProviderSignIn = AsyncDisposable & {
  readonly authenticate: Authenticator;
  /** Undefined: people sign in on the page with tokens only. */
  readonly pageSignIn: PageSignIn | undefined;
};

export type ProviderSignInOptions = {
  readonly settings: ProviderSettings;
  readonly servicesKey: string;
  /** For everything that is no JWT. */
  readonly tokens: Authenticator;
  readonly audit: SignInAudit;
  readonly logger: Logger;
  readonly times?: Pick<IdentityProviderOptions, "refreshMs" | "retryMs"> | undefined;
};

export function providerSignIn(options: ProviderSignInOptions): ProviderSignIn {
  const { settings, servicesKey, tokens, audit, logger, times } = options;
  const stack = new AsyncDisposableStack();
  const warn = (message: string, err?: unknown) => logger.warn({ err }, message);
  const provider = stack.use(new IdentityProvider(settings, { warn, ...times }));
  const deadlines = stack.use(new Deadlines());
  const sessions = pageSessions(servicesKey, settings.issuer);
  const { page } = settings;
  return {
    authenticate: providerAuthenticator({ settings, provider, sessions, deadlines, tokens, audit }),
    pageSignIn:
      page &&
      pageSignIn({
        settings,
        page,
        provider,
        sessions,
        audit,
        startedSignIns: startedSignIns(servicesKey, settings.issuer),
      }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
