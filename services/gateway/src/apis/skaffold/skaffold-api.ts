import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { frameOf } from "@tapedeck/shared/log/batch/batch";
import type { HeldEvent, LogReader } from "@tapedeck/shared/log/log";
import { justBefore, logStart } from "@tapedeck/shared/log/offset";
import { channelFilter, eventSubject } from "@tapedeck/shared/log/subjects";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { ControlClient } from "../../control-client.ts";
import type { Positions } from "../../positions.ts";
import { type ControlDeps, calledHead, controlCall, sendControl } from "../control.ts";
import type { EncodedAnswer, EncodedBatches } from "../encoded-answer.ts";
import { readCollection } from "../read-collection.ts";
import { nameOf, resolveSession } from "../resolve-source.ts";
import { eventBatchesIn, type SessionScope } from "../session-scope.ts";
import { UpstreamError } from "../upstream-error.ts";
import { answerText, forwarded } from "./control-call.ts";
import type { ControlMethod, StateMethod, StreamMethod } from "./methods.ts";
import { dangerOf } from "./safety-guard.ts";
import { readOrEmpty, streamScope } from "./unrecorded.ts";

/**
 * The operations that every transport offers for Skaffold's two APIs. Everything throws TapedeckError
 * (docs/api.md#errors).
 */
export type SkaffoldApi = {
  /**
   * The state message's bytes; empty before the runner exists, for a source without a session, and at an endpoint whose
   * source has not been recorded yet.
   */
  getState(method: StateMethod, context: CallContext): Promise<{ head: AnswerHead; bytes: Uint8Array }>;
  /**
   * The recorded frames, verbatim, in order; then live. Ends only when the context names a session and that ends. At an
   * endpoint whose source has not been recorded yet they begin with its first session.
   */
  events(method: StreamMethod, context: CallContext): Promise<EncodedBatches>;
  /**
   * The upstream's answer, and a position that includes the recorded call.
   * @throws UpstreamError the upstream's own refusal, with its code and text
   */
  control(method: ControlMethod, request: Uint8Array, context: CallContext): Promise<EncodedAnswer>;
};

export type SkaffoldApiDeps = ControlDeps & {
  /** @throws TapedeckError not_ready */
  readonly log: () => LogReader;
  readonly control: ControlClient;
  readonly positions: Positions;
};

/** Skaffold's two APIs, answered from the record. Knows no transport. */
export function skaffoldApi(deps: SkaffoldApiDeps): SkaffoldApi {
  return {
    async getState({ api }, context) {
      const read = async (requested: CallContext) => {
        const { head, rows } = await readCollection(deps, "skaffold", api, requested);
        return { head, bytes: rows[0]?.bytes ?? new Uint8Array() };
      };
      const empty = () => ({ head: { position: deps.positions.written(logStart) }, bytes: new Uint8Array() });
      return readOrEmpty(deps, context, read, empty);
    },

    async events(method, context) {
      const scope = await streamScope(deps, context);
      return { head: scope.head, messages: framesOf(deps, scope, method, context.signal) };
    },

    control: (method, request, context) =>
      controlCall(deps, { upstream: "skaffold", method: method.path }, context, (source) =>
        callSkaffold(deps, source, method, request, context),
      ),
  };
}

async function* framesOf(deps: SkaffoldApiDeps, scope: SessionScope, { channel }: StreamMethod, signal: AbortSignal) {
  const from = { afterOffset: scope.afterOffset, subjects: [channelFilter(scope.source, channel)] };
  for await (const batch of eventBatchesIn(deps, scope, from, { signal })) {
    yield batch.flatMap((held) => bytesOf(held) ?? []);
  }
}

// All readers share live frames, so that what is made of each can be shared, too.
const liveFrames = new WeakMap<HeldEvent, Uint8Array>();

/**
 * The bytes to send again: part 0 of a frame. Frames too large for the log have none. Bytes that are not a message are
 * withheld: they would break the client's stream every time.
 */
function bytesOf(held: HeldEvent): Uint8Array | undefined {
  const { bytes, isShared } = held;
  if (bytes === undefined) return undefined;
  const known = isShared ? liveFrames.get(held) : undefined;
  if (known !== undefined) return known;
  const frame = frameOf(bytes);
  if (frame?.part !== 0 || frame.kind === "upstream.unreadable" || frame.bytes === undefined) return undefined;
  if (isShared) liveFrames.set(held, frame.bytes);
  return frame.bytes;
}

async function callSkaffold(
  deps: SkaffoldApiDeps,
  source: Source,
  method: ControlMethod,
  request: Uint8Array,
  context: CallContext,
): Promise<EncodedAnswer> {
  const danger = await dangerOf(method, request, {
    runnerExists: () => runnerExists(deps, source, context),
    v2AutoWasCalled: () => v2AutoWasCalled(deps, source, context),
  });
  if (danger !== undefined) throw new TapedeckError("refused_dangerous", danger);
  const reply = await sendControl(deps.control, source, context, {
    method: method.path,
    request,
    forwarded: forwarded(method, request),
  });
  if (reply.code !== 0) throw new UpstreamError(reply.code, answerText(method, reply.message));
  const head = await calledHead(deps.positions);
  return { bytes: reply.response, ...(head !== undefined && { head }) };
}

/** By the newest state in the record: Skaffold's GetState is empty before the runner exists. */
async function runnerExists(
  { query, positions }: SkaffoldApiDeps,
  { source }: Source,
  { workspace }: CallContext,
): Promise<boolean> {
  const min_position = positions.written(await positions.lastOffset());
  const { rows } = await query.readState({ workspace, source, min_position, collection: "skaffold.v1" });
  return (rows[0]?.bytes.length ?? 0) > 0;
}

async function v2AutoWasCalled(
  { query, log, positions }: SkaffoldApiDeps,
  source: Source,
  { workspace, signal }: CallContext,
): Promise<boolean> {
  const session = await resolveSession(query, workspace, source, undefined);
  const afterOffset = session === undefined ? logStart : justBefore(positions.own(session.start_position));
  const subjects = [eventSubject(nameOf(source), ownChannel, "control.accepted")];
  for await (const { event } of log().history({ afterOffset, subjects }, await positions.lastOffset(), signal)) {
    const method = event.detail?.$case === "control" ? event.detail.value.method : "";
    if (event.kind === "control.accepted" && method.startsWith("/proto.v2.SkaffoldV2Service/Auto")) return true;
  }
  return false;
}
