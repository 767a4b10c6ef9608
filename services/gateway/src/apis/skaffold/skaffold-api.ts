import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { LogReader, Recorded } from "@tapedeck/shared/log/log";
import { channelFilter, eventSubject } from "@tapedeck/shared/log/subjects";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { ControlClient } from "../../control-client.ts";
import type { Positions } from "../../positions.ts";
import { type ControlDeps, controlCall } from "../control.ts";
import { nameOf, resolveSession, resolveSource } from "../resolve-source.ts";
import { eventsIn, type SessionScope, sessionScope } from "../session-scope.ts";
import { stateHead } from "../state-head.ts";
import { UpstreamError } from "../upstream-error.ts";
import { answerText, dangerOf, forwarded } from "./control-call.ts";
import type { ControlMethod, StateMethod, StreamMethod } from "./methods.ts";

/** What every transport offers of Skaffold's two APIs. Everything throws TapedeckError (docs/api.md#errors). */
export type SkaffoldApi = {
  /** The state message's bytes; empty before the runner exists and for a source without a session. */
  getState(method: StateMethod, context: CallContext): Promise<{ head: AnswerHead; bytes: Uint8Array }>;
  /** The recorded frames, verbatim, in order; then live. Ends only where the context names a session that ends. */
  events(method: StreamMethod, context: CallContext): Promise<{ head: AnswerHead; frames: AsyncIterable<Uint8Array> }>;
  /**
   * The upstream's answer.
   * @throws UpstreamError the upstream's own refusal, with its code and text
   */
  control(method: ControlMethod, request: Uint8Array, context: CallContext): Promise<Uint8Array>;
};

export type SkaffoldApiDeps = ControlDeps & {
  /** @throws TapedeckError not_ready */
  readonly log: () => LogReader;
  readonly control: ControlClient;
  readonly positions: Positions;
};

/** Skaffold's two APIs, answered from the record. Knows no transport. */
export function skaffoldApi({ query, log, control, positions, refused }: SkaffoldApiDeps): SkaffoldApi {
  async function* framesOf(scope: SessionScope, { channel }: StreamMethod, signal: AbortSignal) {
    const from = { afterSeq: scope.afterSeq, subjects: [channelFilter(scope.source, channel)] };
    for await (const recorded of eventsIn({ query, log, positions }, scope, from, { signal })) {
      const frame = frameOf(recorded);
      if (frame !== undefined) yield frame;
    }
  }

  async function call(method: ControlMethod, request: Uint8Array, context: CallContext, source: Source) {
    const danger = await dangerOf(method, request, {
      runnerExists: () => runnerExists(context.workspace, source),
      v2AutoWasCalled: () => v2AutoWasCalled(source, context),
    });
    if (danger !== undefined) throw new TapedeckError("refused_dangerous", danger);
    const to = forwarded(method, request);
    const reply = await control.call(nameOf(source), {
      method: method.path,
      request: Buffer.from(request),
      forwarded_method: to.method,
      forwarded_request: Buffer.from(to.request),
      who: context.who,
    });
    if (reply.code !== 0) throw new UpstreamError(reply.code, answerText(method, reply.message));
    return reply.response;
  }

  /** By the record as it is now: Skaffold's GetState is empty before. */
  async function runnerExists(workspace: string, { source }: Source): Promise<boolean> {
    const min_position = positions.written(await positions.lastSeq());
    const { rows } = await query.readState({ workspace, source, min_position, collection: "skaffold.v1" });
    return (rows[0]?.bytes.length ?? 0) > 0;
  }

  async function v2AutoWasCalled(source: Source, { workspace, signal }: CallContext): Promise<boolean> {
    const session = await resolveSession(query, workspace, source, undefined);
    const afterSeq = session === undefined ? 0 : positions.own(session.start_position) - 1;
    const subjects = [eventSubject(nameOf(source), "tapedeck", "control.accepted")];
    for await (const { event } of log().history({ afterSeq, subjects }, await positions.lastSeq(), signal)) {
      const method = event.detail?.$case === "control" ? event.detail.value.method : "";
      if (event.kind === "control.accepted" && method.startsWith("/proto.v2.SkaffoldV2Service/Auto")) return true;
    }
    return false;
  }

  return {
    async getState(method, context) {
      const { source } = await resolveSource(query, context, "skaffold");
      const { head, rows } = await query.readState({
        workspace: context.workspace,
        source,
        session: context.session ?? "",
        at: context.at ?? "",
        min_position: context.minPosition ?? "",
        collection: `skaffold.${method.api}`,
      });
      return {
        head: stateHead(head),
        bytes: rows[0]?.bytes ?? new Uint8Array(),
      };
    },

    async events(method, context) {
      const scope = await sessionScope({ query, log, positions }, context, "skaffold");
      return { head: scope.head, frames: framesOf(scope, method, context.signal) };
    },

    control: (method, request, context) =>
      controlCall({ query, refused }, { upstream: "skaffold", method: method.path }, context, (source) =>
        call(method, request, context, source),
      ),
  };
}

/**
 * The bytes to send again: part 0 of a frame. Frames too large for the log have none; bytes that are no
 * message are kept from clients, whose stream they would break every time.
 */
function frameOf({ event }: Recorded): Uint8Array | undefined {
  if (event.part !== 0 || event.kind === "upstream.unreadable") return undefined;
  const { original } = event;
  return original === undefined || (original.bytes.length === 0 && original.size > 0n) ? undefined : original.bytes;
}
