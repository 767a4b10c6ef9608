import { type AuditEntry, auditEntryOf } from "@tapedeck/shared/audit/entry";
import { type AuditBounds, type AuditStore, openAuditStore } from "@tapedeck/shared/audit/store";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { NatsConnection } from "nats";
import type { Caller } from "../call-context.ts";
import type { LogLink } from "../log-link.ts";

/** Records what a caller has done; never fails. */
export type Audit = (entry: Omit<AuditEntry, "time">) => void;

/** A caller as entries have it. */
export function auditedCaller({ who, kind, token }: Pick<Caller, "who" | "kind" | "token">) {
  return { who, kind, ...(token !== undefined && { by: token }) };
}

/** In place of a caller, for an entry that counts what was left out. */
export const severalCallers = { who: "several", kind: "several" } as const;

export type AuditLogOptions = {
  readonly nats: LogLink["nats"];
  readonly bounds: AuditBounds;
  readonly logger: Logger;
};

/**
 * Writes the audit log. What is done does not wait for its entry: most of it needs NATS itself. An entry that can't be
 * written goes into this process's log, whole.
 */
export class AuditLog implements AsyncDisposable {
  readonly #nats: LogLink["nats"];
  readonly #bounds: AuditBounds;
  readonly #logger: Logger;
  readonly #writing = new Set<Promise<void>>();
  #opened: { readonly on: NatsConnection; readonly store: Promise<AuditStore> } | undefined;

  constructor({ nats, bounds, logger }: AuditLogOptions) {
    this.#nats = nats;
    this.#bounds = bounds;
    this.#logger = logger;
  }

  readonly record: Audit = (action) => {
    const entry = auditEntryOf(action);
    const writing = this.#append(entry).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  };

  /** @throws TapedeckError not_ready; rejects when NATS can't be asked */
  async store(): Promise<AuditStore> {
    const { connection } = this.#nats();
    if (this.#opened?.on !== connection) {
      const opened = { on: connection, store: openAuditStore(connection, this.#bounds) };
      this.#opened = opened;
      opened.store.catch(() => {
        if (this.#opened === opened) this.#opened = undefined;
      });
    }
    return this.#opened.store;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#writing);
  }

  async #append(entry: AuditEntry): Promise<void> {
    try {
      await (await this.store()).append(entry);
    } catch (err) {
      this.#logger.warn({ err, entry }, "this entry could not be written to the audit log");
    }
  }
}
