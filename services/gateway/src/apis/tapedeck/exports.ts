import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { parseFilter } from "@tapedeck/shared/filter/filter";
import { type Audit, auditedCaller } from "../../audit/audit-log.ts";
import { boundedAudit } from "../../audit/bounded-audit.ts";
import type { SubscriptionMessages } from "./messages.ts";
import type { TapedeckApi } from "./tapedeck-api.ts";

/**
 * The same API, which records who takes tables or sessions away: reads of named sessions up to an end, with the upstream's own
 * messages. That is what `tapedeck export` and `replay` ask for, and what a file is made of. An export that goes on behind
 * a hole of the log is the same export.
 */
export function auditedExports(api: TapedeckApi, all: Audit): TapedeckApi {
  const audit = boundedAudit(all);
  const interrupted = new Set<string>();
  return {
    ...api,
    async exportTables(days, context) {
      const { head, messages } = await api.exportTables(days, context);
      const about = { from: days.from, to: days.to };
      const onFirst = () =>
        audit({ action: "tables.exported", ...auditedCaller(context), workspace: context.workspace, about });
      return { head, messages: withFirst(messages, onFirst) };
    },
    async subscribe(request, context) {
      const opened = await api.subscribe(request, context);
      const { original = false, until, filter = {}, after = context.after } = request;
      const { sessions = [] } = parseFilter(filter);
      if (!original || until === undefined || sessions.length === 0) return opened;
      const caller = auditedCaller(context);
      const { workspace } = context;
      const exportKey = JSON.stringify([caller, workspace, until, sessions.toSorted()]);
      const goesOn = interrupted.delete(`${exportKey} ${after}`);
      if (!goesOn) audit({ action: "session.exported", ...caller, workspace, about: namedIn(sessions) });
      const onLoss = (earliest: string) => {
        interrupted.add(`${exportKey} ${earliest}`);
        const [oldest] = interrupted;
        if (interrupted.size > maxInterrupted && oldest !== undefined) interrupted.delete(oldest);
      };
      return { ...opened, messages: withLosses(opened.messages, onLoss) };
    },
  };
}

/** A request that is refused has no first message. */
async function* withFirst<T>(messages: AsyncIterable<T>, onFirst: () => void): AsyncGenerator<T, void> {
  let isFirst = true;
  for await (const message of messages) {
    if (isFirst) onFirst();
    isFirst = false;
    yield message;
  }
}

/** An export that continues after this many others counts as another one. */
const maxInterrupted = 1_000;

async function* withLosses(messages: SubscriptionMessages, onLoss: (earliest: string) => void) {
  try {
    yield* messages;
  } catch (error) {
    const { loss, earliest } = error instanceof TapedeckError ? error.details : {};
    if (loss !== undefined && earliest !== undefined) onLoss(earliest);
    throw error;
  }
}

/** Ids are the caller's words: they need not exist. */
function namedIn(sessions: readonly string[]) {
  const more = sessions.length - maxNamed;
  return { sessions: sessions.slice(0, maxNamed).map((id) => id.slice(0, idLength)), ...(more > 0 && { more }) };
}

const maxNamed = 20;
const idLength = 64;
