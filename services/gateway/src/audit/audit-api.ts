import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import type { AuditStore } from "@tapedeck/shared/audit/store";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseRfc3339 } from "@tapedeck/shared/time/rfc3339";
import { z } from "zod";
import { one, time } from "../apis/tapedeck/parameter-schemas.ts";
import type { CallContext } from "../call-context.ts";

export const auditParameters = z.strictObject({
  since: one(time, "Only entries of this time or later."),
  until: one(time, "Only entries up to this time."),
});

export type AuditParameters = z.infer<typeof auditParameters>;

/** The audit log for admins. Everything throws TapedeckError. */
export type AuditApi = {
  /** Entries of the caller's workspace, the oldest first; for admins of all workspaces those of all. */
  read(period: AuditParameters, context: CallContext): Promise<AsyncIterable<AuditEntry>>;
};

export function auditApi(store: () => Promise<AuditStore>): AuditApi {
  return {
    async read({ since, until }, { workspace, roles, everywhere, signal }) {
      const isOfAll = roles === undefined || everywhere === true;
      const period = { since: dateOf(since), until: dateOf(until) };
      const opened = await store().catch((cause: unknown) => {
        if (cause instanceof TapedeckError) throw cause;
        throw new TapedeckError("not_ready", "the audit log can't be read now: try again in a moment", {}, { cause });
      });
      return whileOpen(opened.read({ ...period, workspace: isOfAll ? undefined : workspace }), signal);
    },
  };
}

async function* whileOpen<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T, void> {
  for await (const item of items) {
    signal.throwIfAborted();
    yield item;
  }
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : parseRfc3339(text);
}
