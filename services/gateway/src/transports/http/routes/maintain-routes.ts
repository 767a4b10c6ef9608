import { type TapedeckError, toErrorBody } from "@tapedeck/shared/errors/errors";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type BackupPart, backupParameters, type MaintainApi } from "../../../apis/maintain/maintain-api.ts";
import { type RawParameters, readParameters } from "../../../apis/tapedeck/parameters.ts";
import type { CallContext } from "../../../call-context.ts";
import type { CallerLimits } from "../../../limits/limits.ts";
import type { CallWatch } from "../../../metrics.ts";
import { closedSignal, contextOf, type HttpCaller } from "../call-context.ts";
import { ownError, sendError } from "../error-answers.ts";
import { errorLine } from "../event-source.ts";
import { bodyOf } from "../json-body.ts";
import { writeStream } from "../write-stream.ts";
import { ndjson } from "./openapi-routes.ts";

export type MaintainRoutes = {
  readonly watch: CallWatch;
  readonly limits: Pick<CallerLimits, "unreadBytes">;
};

type OfWorkspace = { readonly Params: { readonly workspace: string } };

const backupType = "application/vnd.tapedeck.backup";

/**
 * For admins: DELETE /api/v1/sessions/<id> erases a session, DELETE /api/v1/developers/<name> a developer, DELETE
 * /api/v1/workspaces/<name> removes a workspace, and POST /api/v1/rebuild rebuilds the tables, all with their progress as NDJSON
 * (`progress`, then `complete` or `error`); GET /api/v1/backup answers with a backup. GET /api/v1/workspaces lists workspaces, and
 * POST /api/v1/workspaces/<name>/retention says how long one is kept.
 */
export function maintainRoutes(
  app: FastifyInstance,
  api: MaintainApi,
  caller: HttpCaller,
  { watch, limits }: MaintainRoutes,
): void {
  const forAdmins = { config: { access: "admin" } } as const;

  const streaming =
    <T>(
      type: string,
      begin: (request: FastifyRequest, context: CallContext) => Promise<AsyncIterable<T>>,
      render: (items: AsyncIterable<T>) => AsyncIterable<string | Uint8Array>,
      lastWords: (error: TapedeckError) => string | Uint8Array,
    ) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const context = contextOf(request, caller(request), closedSignal(reply));
      let items: AsyncIterable<T>;
      try {
        items = await begin(request, context);
      } catch (error) {
        return sendError(reply, ownError(watch, error));
      }
      let last: string | Uint8Array = "";
      await writeStream(reply, context.signal, {
        headers: { "content-type": type },
        chunks: withEach(render(items), (chunk) => {
          last = chunk;
        }),
        lastWords: (error) => lastWords(ownError(watch, error)),
        sent: watch.sent,
        unreadBytes: limits.unreadBytes,
        // Repeated progress is still true. A backup is never silent for long.
        idle: { text: () => (typeof last === "string" ? last : "") },
      });
      return reply;
    };

  app.delete<{ Params: { session: string } }>("/api/v1/sessions/:session", forAdmins, (request, reply) =>
    streaming(ndjson, (_, context) => api.erase(request.params.session, context), lines, errorLine)(request, reply),
  );
  app.delete<{ Params: { developer: string } }>("/api/v1/developers/:developer", forAdmins, (request, reply) =>
    streaming(
      ndjson,
      (_, context) => api.eraseDeveloper(request.params.developer, context),
      lines,
      errorLine,
    )(request, reply),
  );
  app.delete<OfWorkspace>("/api/v1/workspaces/:workspace", forAdmins, (request, reply) =>
    streaming(
      ndjson,
      (_, context) => api.removeWorkspace(request.params.workspace, context),
      lines,
      errorLine,
    )(request, reply),
  );
  const answering =
    (answer: (context: CallContext, request: FastifyRequest) => Promise<object>) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      try {
        return await answer(contextOf(request, caller(request), closedSignal(reply)), request);
      } catch (error) {
        return sendError(reply, ownError(watch, error));
      }
    };
  app.get(
    "/api/v1/workspaces",
    forAdmins,
    answering((context) => api.workspaces(context)),
  );
  app.get<OfWorkspace>("/api/v1/workspaces/:workspace", forAdmins, (request, reply) =>
    answering((context) => api.workspace(request.params.workspace, context))(request, reply),
  );
  app.post<OfWorkspace>("/api/v1/workspaces/:workspace/retention", forAdmins, (request, reply) =>
    answering((context) => api.setRetention(request.params.workspace, bodyOf(request), context))(request, reply),
  );
  app.post(
    "/api/v1/rebuild",
    forAdmins,
    streaming(ndjson, (_, context) => api.rebuild(context), lines, errorLine),
  );
  app.get(
    "/api/v1/backup",
    { config: { ...forAdmins.config, readsQuery: true } },
    streaming(
      backupType,
      (request, context) => api.backUp(context, readParameters(backupParameters, request.query as RawParameters)),
      frames,
      (error) => frame("e", toErrorBody(error)),
    ),
  );
}

async function* withEach<T>(items: AsyncIterable<T>, see: (item: T) => void): AsyncGenerator<T, void> {
  for await (const item of items) {
    see(item);
    yield item;
  }
}

async function* lines(items: AsyncIterable<object>): AsyncGenerator<string, void> {
  for await (const item of items) yield `${JSON.stringify({ type: "progress", ...item })}\n`;
  yield `${JSON.stringify({ type: "complete" })}\n`;
}

/** A frame is a letter, a length (32 bits, big endian) and the content; see docs/api.md. */
async function* frames(parts: AsyncIterable<BackupPart>): AsyncGenerator<Uint8Array, void> {
  for await (const part of parts) {
    if (part.type === "piece") yield frame("p", part.bytes);
    else if (part.type === "log") yield frame("w", { workspace: part.workspace });
    else if (part.type === "snapshot") yield frame("s", part.snapshot);
    else yield frame("z", { tokens: part.tokens, sinks: part.sinks });
  }
}

function frame(letter: "w" | "p" | "s" | "z" | "e", content: Uint8Array | object): Uint8Array {
  const bytes = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content));
  const head = Buffer.alloc(5);
  head.write(letter);
  head.writeUInt32BE(bytes.byteLength, 1);
  return Buffer.concat([head, bytes]);
}
