import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
import { formatPosition } from "@tapedeck/shared/log/position";
import { channelFilter, eventSubject } from "@tapedeck/shared/log/subjects";
import { parseSourceName, type SourceName } from "@tapedeck/shared/source";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { ControlClient } from "../../control-client.ts";
import type { Positions } from "../../positions.ts";
import type { QueryClient } from "../../query-client.ts";
import { resolveSession, resolveSource } from "../resolve-source.ts";
import { UpstreamError } from "../upstream-error.ts";
import { answerText, dangerOf, forwarded } from "./control-call.ts";
import type { ControlMethod, StateMethod, StreamMethod } from "./methods.ts";

export type SkaffoldApi = {
  /** The state message's bytes; empty before the runner exists and for a source without a session. */
  getState(method: StateMethod, context: CallContext): Promise<{ head: AnswerHead; bytes: Uint8Array }>;
  /** The recorded frames, verbatim, in order; then live. Ends only where the context names a session that ends. */
  events(method: StreamMethod, context: CallContext): Promise<{ head: AnswerHead; frames: AsyncIterable<Uint8Array> }>;
  /** The upstream's answer. Its own errors come as UpstreamError with its code and text. */
  control(method: ControlMethod, request: Uint8Array, context: CallContext): Promise<Uint8Array>;
};

export type SkaffoldApiDeps = {
  readonly query: QueryClient;
  readonly log: LogReader;
  readonly control: ControlClient;
  readonly positions: Positions;
};

/** Skaffold's two APIs, answered from the record. Knows no transport. */
export function skaffoldApi({ query, log, control, positions }: SkaffoldApiDeps): SkaffoldApi {
  const readState = async (context: CallContext, source: string, collection: string) =>
    query.readState({
      workspace: context.workspace,
      source,
      session: context.session ?? "",
      at: context.at ?? "",
      min_position: context.minPosition ?? "",
      collection,
    });

  const api: SkaffoldApi = {
    async getState(method, context) {
      const source = await resolveSource(query, context, "skaffold");
      const { head, rows } = await readState(context, source.source, `skaffold.${method.api}`);
      return {
        head: { position: head.position, session: head.session, sessionEnded: head.session_ended },
        bytes: rows[0]?.bytes ?? new Uint8Array(),
      };
    },

    async events(method, context) {
      if (context.at !== undefined) {
        throw new TapedeckError("invalid_argument", "a stream has no `at`: use `after` to say where it starts", {
          field: "at",
        });
      }
      const source = await resolveSource(query, context, "skaffold");
      const name = asSourceName(source.source);
      const session = await resolveSession(query, context.workspace, source, context.session);
      const sessionStart = session === undefined ? 0 : Math.max(0, positions.own(session.start_position) - 1);
      const after =
        context.after === undefined
          ? sessionStart
          : Math.max(await positions.resolveAfter(context.after), context.session === undefined ? 0 : sessionStart);
      const frames = (async function* () {
        const only = context.session === undefined ? undefined : session;
        if (only?.ended === true && positions.own(only.end_position) <= after) return;
        const subjects = [channelFilter(name, method.channel), eventSubject(name, "tapedeck", "session.ended")];
        for await (const recorded of log.follow({ afterSeq: after, subjects }, { signal: context.signal })) {
          if (only !== undefined && isOver(recorded, only.session, only.ended, positions.own(only.end_position)))
            return;
          const frame = frameOf(recorded, method.channel, only?.session);
          if (frame !== undefined) yield frame;
        }
      })();
      const head = { position: formatPosition({ epoch: log.epoch, seq: after }), session: session?.session ?? "" };
      return { head, frames };
    },

    async control(method, request, context) {
      const source = await resolveSource(query, context, "skaffold");
      const name = asSourceName(source.source);
      const danger = await dangerOf(method, request, {
        runnerExists: async () => {
          const { rows } = await readState(context, source.source, "skaffold.v1");
          return (rows[0]?.bytes.length ?? 0) > 0;
        },
        v2AutoWasCalled: () => v2AutoWasCalled(name, source.current_session, context),
      });
      if (danger !== undefined) throw new TapedeckError("refused_dangerous", danger);
      const to = forwarded(method, request);
      const reply = await control.call(name, {
        method: method.path,
        request: Buffer.from(request),
        forwarded_method: to.method,
        forwarded_request: Buffer.from(to.request),
        who: context.who,
      });
      if (reply.code !== 0) throw new UpstreamError(reply.code, answerText(method, reply.message));
      return reply.response;
    },
  };

  async function v2AutoWasCalled(source: SourceName, session: string, context: CallContext): Promise<boolean> {
    const { items } = await query.listSessions({
      workspace: context.workspace,
      sources: [source],
      sessions: [session],
      limit: 1,
    });
    const start = items[0] === undefined ? 0 : positions.own(items[0].start_position) - 1;
    const subjects = [eventSubject(source, "tapedeck", "control.accepted")];
    const { lastSeq } = await log.bounds();
    for await (const { event } of log.history({ afterSeq: Math.max(0, start), subjects }, lastSeq, context.signal)) {
      const method = event.detail?.$case === "control" ? event.detail.value.method : "";
      if (event.kind === "control.accepted" && method.startsWith("/proto.v2.SkaffoldV2Service/Auto")) return true;
    }
    return false;
  }

  return api;
}

/** The bytes to send again: part 0 of a frame of this channel. Frames too large for the log have none. */
function frameOf({ event }: Recorded, channel: string, session: string | undefined): Uint8Array | undefined {
  if (event.channel !== channel || event.part !== 0) return undefined;
  if (session !== undefined && event.session !== session) return undefined;
  const { original } = event;
  return original === undefined || (original.bytes.length === 0 && original.size > 0n) ? undefined : original.bytes;
}

/** The named session has said its last: its own end, or anything of a later session. */
function isOver({ seq, event }: Recorded, session: string, ended: boolean, endSeq: number): boolean {
  if (event.kind === "session.ended" && event.session === session) return true;
  if (ended) return seq > endSeq;
  return event.session !== "" && event.session > session;
}

function asSourceName(text: string): SourceName {
  const name = parseSourceName(text);
  if (name === undefined) throw new Error(`query named a source "${text}" that is none`);
  return name;
}
