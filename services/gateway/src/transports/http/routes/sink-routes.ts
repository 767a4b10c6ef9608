import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallContext } from "../../../call-context.ts";
import type { CallWatch } from "../../../metrics.ts";
import type { SinksApi } from "../../../sinks/sinks-api.ts";
import { closedSignal, contextOf, type HttpCaller } from "../call-context.ts";
import { ownError, sendError } from "../error-answers.ts";
import { bodyOf } from "../json-body.ts";

type OfSink = { readonly Params: { readonly sink: string } };
type Answer = (context: CallContext, sink: string, request: FastifyRequest) => Promise<object>;

/** Sinks under /api/v1/sinks: viewers list them, admins change them. */
export function sinkRoutes(app: FastifyInstance, api: SinksApi, caller: HttpCaller, watch: CallWatch): void {
  const forAdmins = { config: { access: "admin" } } as const;
  const answering =
    (answer: Answer, status = 200) =>
    async (request: FastifyRequest<OfSink>, reply: FastifyReply) => {
      try {
        const context = contextOf(request, caller(request), closedSignal(reply));
        return await reply.code(status).send(await answer(context, request.params.sink, request));
      } catch (error) {
        return sendError(reply, ownError(watch, error));
      }
    };
  const path = "/api/v1/sinks";
  app.get<OfSink>(
    path,
    answering((context) => api.list(context)),
  );
  app.post<OfSink>(
    path,
    forAdmins,
    answering((context, _, request) => api.add(bodyOf(request), context), 201),
  );
  app.delete<OfSink>(
    `${path}/:sink`,
    forAdmins,
    answering((context, sink) => api.remove(sink, context)),
  );
  const calls: Readonly<Record<string, Answer>> = {
    pause: (context, sink) => api.pause(sink, context),
    resume: (context, sink) => api.resume(sink, context),
    rewind: (context, sink, request) => api.rewind(sink, bodyOf(request), context),
    target: (context, sink, request) => api.setTarget(sink, bodyOf(request), context),
    test: (context, sink) => api.test(sink, context),
    "parked/retry": (context, sink, request) => api.retryParked(sink, bodyOf(request), context),
    "parked/drop": (context, sink, request) => api.dropParked(sink, bodyOf(request), context),
  };
  for (const [name, answer] of Object.entries(calls)) {
    app.post<OfSink>(`${path}/:sink/${name}`, forAdmins, answering(answer));
  }
  app.get<OfSink>(
    `${path}/:sink/parked`,
    forAdmins,
    answering((context, sink) => api.parked(sink, context)),
  );
}
