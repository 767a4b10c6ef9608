import { parseFilter } from "@tapedeck/shared/filter/filter";
import { type Audit, auditedCaller } from "../../audit/audit-log.ts";
import { boundedAudit } from "../../audit/bounded-audit.ts";
import type { TapedeckApi } from "./tapedeck-api.ts";

/**
 * The same API, which records who takes sessions away: reads of named sessions up to an end, with the upstream's own
 * messages. That is what `tapedeck export` and `replay` ask for, and what a file is made of.
 */
export function auditedExports(api: TapedeckApi, all: Audit): TapedeckApi {
  const audit = boundedAudit(all);
  return {
    ...api,
    async subscribe(request, context) {
      const opened = await api.subscribe(request, context);
      const { original = false, until, filter = {} } = request;
      const { sessions = [] } = parseFilter(filter);
      if (original && until !== undefined && sessions.length > 0) {
        audit({
          action: "session.exported",
          ...auditedCaller(context),
          workspace: context.workspace,
          about: namedIn(sessions),
        });
      }
      return opened;
    },
  };
}

/** Ids are the caller's words: they need not exist. */
function namedIn(sessions: readonly string[]) {
  const more = sessions.length - maxNamed;
  return { sessions: sessions.slice(0, maxNamed).map((id) => id.slice(0, idLength)), ...(more > 0 && { more }) };
}

const maxNamed = 20;
const idLength = 64;
