import type { FastifyInstance } from "fastify";
import { type RawParameters, readParameters } from "../../../apis/tapedeck/parameters.ts";
import { type AuditApi, auditParameters } from "../../../audit/audit-api.ts";
import type { CallerLimits } from "../../../limits/limits.ts";
import type { CallWatch } from "../../../metrics.ts";
import { closedSignal, contextOf, type HttpCaller } from "../call-context.ts";
import { ownError, sendError } from "../error-answers.ts";
import { errorLine } from "../event-source.ts";
import { writeStream } from "../write-stream.ts";
import { ndjson } from "./openapi-routes.ts";

export type AuditRoutes = { readonly watch: CallWatch; readonly limits: Pick<CallerLimits, "unreadBytes"> };

/** For admins: GET /api/v1/audit gives who did what as NDJSON, an entry a line, then `complete` or `error`. */
export function auditRoutes(app: FastifyInstance, api: AuditApi, caller: HttpCaller, options: AuditRoutes): void {
  const { watch, limits } = options;
  app.get("/api/v1/audit", { config: { access: "admin", readsQuery: true } }, async (request, reply) => {
    try {
      const context = contextOf(request, caller(request), closedSignal(reply));
      const entries = await api.read(readParameters(auditParameters, request.query as RawParameters), context);
      await writeStream(reply, context.signal, {
        headers: { "content-type": ndjson },
        chunks: lines(entries),
        lastWords: (error) => errorLine(ownError(watch, error)),
        sent: watch.sent,
        unreadBytes: limits.unreadBytes,
      });
      return reply;
    } catch (error) {
      return sendError(reply, ownError(watch, error));
    }
  });
}

async function* lines(entries: AsyncIterable<object>): AsyncGenerator<string, void> {
  for await (const entry of entries) yield `${JSON.stringify({ type: "entry", ...entry })}\n`;
  yield `${JSON.stringify({ type: "complete" })}\n`;
}
