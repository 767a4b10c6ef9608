import { type AuditEntry, auditEntryOf } from "@tapedeck/shared/audit/entry";
import { erasedPerson } from "@tapedeck/shared/audit/person";
import { openAuditStore } from "@tapedeck/shared/audit/store";
import type { DeveloperErasure } from "@tapedeck/shared/log/erasures/developer-erasures";
import type { Erasure } from "@tapedeck/shared/log/erasures/erasure-store";
import type { Removal } from "@tapedeck/shared/log/workspaces/workspace-store";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { NatsConnection } from "nats";
import { workspaceOf } from "./erasures.ts";

type Caller = Pick<AuditEntry, "who" | "kind" | "by">;

/** Writes to the audit log what ingest has erased and removed. No method rejects. */
export class MaintenanceAudit {
  readonly #nats: () => NatsConnection | undefined;
  readonly #logger: Logger;

  /** `nats`: undefined while it is unavailable at the start. */
  constructor(nats: () => NatsConnection | undefined, logger: Logger) {
    this.#nats = nats;
    this.#logger = logger;
  }

  readonly session = async (action: "session.erasure-begun" | "session.erased", erasure: Erasure): Promise<void> => {
    const { source, session, events, kind, ...caller } = erasure;
    if (kind === "retention") return;
    const about = { source, session, ...(events !== undefined && { events }) };
    await this.#append(action, workspaceOf(erasure), { ...caller, kind }, about);
  };

  /** The name is in the first entry alone, and replaced there before the second one is written. */
  readonly developer = async (
    action: "developer.erasure-begun" | "developer.erased",
    { workspace, developer = "", sessions, ...caller }: DeveloperErasure,
  ): Promise<void> => {
    const about = action === "developer.erased" ? { developer: erasedPerson, sessions } : { developer };
    await this.#append(action, workspace, caller, about);
  };

  readonly removal = ({ workspace, messages = 0, ...caller }: Removal): Promise<void> =>
    this.#append("workspace.removed", workspace, caller, { messages });

  readonly retention = (workspace: string, caller: Caller, about: AuditEntry["about"]): Promise<void> =>
    this.#append("workspace.retention-changed", workspace, caller, about);

  /** What can't be written there goes into this process's log, whole: an erasure must not wait for its entry. */
  async #append(
    action: AuditEntry["action"],
    workspace: string,
    { who, kind, by }: Caller,
    about: AuditEntry["about"],
  ): Promise<void> {
    const entry = auditEntryOf({ action, who, kind, workspace, ...(by !== undefined && { by }), about });
    try {
      const nats = this.#nats();
      if (nats === undefined) throw new Error("NATS is unavailable");
      await (await openAuditStore(nats)).append(entry);
    } catch (err) {
      this.#logger.warn({ err, entry }, "this entry could not be written to the audit log");
    }
  }
}
