import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { Caller } from "../call-context.ts";
import { RefusedCalls } from "../limits/refused-calls.ts";
import { type Audit, auditedCaller } from "./audit-log.ts";

/** The way of a sign-in: with a JWT, or on the page. */
export type SignInWay = "jwt" | "page";

/** More than this many JWTs at once are recorded more than once each. */
const maxKnown = 10_000;

/**
 * Records who came in by the identity provider, and who was refused. A JWT is recorded when it is first seen, not with each
 * call; refusals have the bounds of refused control calls.
 */
export class SignInAudit {
  readonly #audit: Audit;
  readonly #logger: Logger;
  readonly #refused: RefusedCalls;
  readonly #known = new Set<string>();

  constructor(audit: Audit, logger: Logger) {
    this.#audit = audit;
    this.#logger = logger;
    this.#refused = new RefusedCalls(logger, { kind: "sign-in", audit });
  }

  /** `key`: identifies a JWT among others of the same person. */
  accepted(caller: Caller, way: SignInWay, key?: string): void {
    if (key !== undefined && this.#known.has(key)) return;
    if (this.#known.size >= maxKnown) this.#known.clear();
    if (key !== undefined) this.#known.add(key);
    const { who, kind, workspace, roles = new Set() } = caller;
    const about = { way, roles: [...roles] };
    this.#logger.info({ audit: "sign-in accepted", who, kind, workspace, ...about }, "sign-in accepted");
    this.#audit({ action: "sign-in.accepted", ...auditedCaller(caller), workspace, about });
  }

  /** Records refusals only, not that something is away. `peer`: the address. */
  refused(error: unknown, way: SignInWay, peer: string): void {
    if (!(error instanceof TapedeckError) || !["unauthenticated", "forbidden"].includes(error.code)) return;
    this.#refused.write({ who: peer, kind: "address", workspace: "-", method: way, source: "", error });
  }
}
