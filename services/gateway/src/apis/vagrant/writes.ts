import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { GetVersionInfoResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { maxEffectMs } from "@tapedeck/shared/control-effects";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { logStart } from "@tapedeck/shared/log/offset";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import { delay } from "@tapedeck/shared/sync/delay";
import type { AnswerHead, CallContext } from "../../call-context.ts";
import type { ControlClient } from "../../control-client.ts";
import { type ControlDeps, calledHead, controlCall, sendControl } from "../control.ts";
import type { EncodedAnswer } from "../encoded-answer.ts";
import { readCollection } from "../read-collection.ts";
import { nameOf } from "../resolve-source.ts";
import type { ScopeDeps } from "../session-scope.ts";
import { UpstreamError } from "../upstream-error.ts";
import { unreadableRequest } from "./errors.ts";
import type { WriteName } from "./methods.ts";
import { dangerOf } from "./safety-guard.ts";
import { withoutServerFields } from "./wire.ts";

export type WriteDeps = ScopeDeps & ControlDeps & { readonly control: ControlClient };

/**
 * Answers request bytes with the upstream's answer, as the upstream gave it, when reads show what the call has changed, or after
 * `maxEffectMs`. The position of the answer includes that change; after `maxEffectMs` it may include only the recorded call.
 */
export type Write = (method: WriteName, request: Uint8Array, context: CallContext) => Promise<EncodedAnswer>;

/**
 * Writes, by the control path. Calls that docs/upstreams/vagrant.md#dangerous-requests lists as dangerous are refused before anything is sent.
 * @throws UpstreamError the upstream's own refusal, with its code and text
 * @throws TapedeckError refused_dangerous, upstream_away, and the errors of resolving the source and session
 */
export function vagrantWrite(deps: WriteDeps): Write {
  return (method, request, context) => {
    const what = { upstream: "vagrant", method: VagrantService[method].path } as const;
    return controlCall(deps, what, context, (source) => callVagrant(deps, source, method, request, context));
  };
}

async function callVagrant(
  deps: WriteDeps,
  source: Source,
  method: WriteName,
  request: Uint8Array,
  context: CallContext,
): Promise<EncodedAnswer> {
  const { path } = VagrantService[method];
  const danger = await dangerOf(method, request, {
    version: () => versionOf(deps, context),
    hasMoreJobsThan: (count) => hasMoreJobsThan(deps, count, source, context.signal),
  });
  if (danger !== undefined) throw new TapedeckError("refused_dangerous", danger);
  const forwarded = { method: path, request: forwardedRequest(method, request) };
  const reply = await sendControl(deps.control, source, context, { method: path, request, forwarded });
  if (reply.code !== 0) throw new UpstreamError(reply.code, reply.message);
  const head = (await readableEffect(deps, source, reply.effect_ms, context)) ?? (await calledHead(deps.positions));
  return { bytes: reply.response, ...(head !== undefined && { head }) };
}

/** Waits until the tables have what a call or stream has changed (ControlReply.effect_ms), and gives the position of that. */
export async function readableEffect(
  deps: WriteDeps,
  { source }: Source,
  effect_ms: number | undefined,
  context: CallContext,
): Promise<AnswerHead | undefined> {
  if (effect_ms === undefined) return undefined;
  const over = new AbortController();
  const late = delay(maxEffectMs - effect_ms, AbortSignal.any([over.signal, context.signal])).then(() => undefined);
  const { positions } = deps;
  const read = async () => {
    const minPosition = positions.written(await positions.lastOffset());
    const { head } = await readCollection(deps, "vagrant", "version", { ...context, source, minPosition });
    return head;
  };
  // The call was made: only its position is missing when the log or the tables are away.
  const head = await Promise.race([read().catch(() => undefined), late]);
  over.abort();
  return head;
}

/** By the newest state in the record. */
async function versionOf(deps: WriteDeps, context: CallContext): Promise<string> {
  const { positions } = deps;
  const minPosition = positions.written(await positions.lastOffset());
  const { rows } = await readCollection(deps, "vagrant", "version", { ...context, minPosition });
  return GetVersionInfoResponse.decode(rows[0]?.bytes ?? new Uint8Array()).info?.version ?? "";
}

/** Stops reading the log as soon as the answer is known. */
async function hasMoreJobsThan(
  { log, positions }: WriteDeps,
  count: number,
  source: Source,
  signal: AbortSignal,
): Promise<boolean> {
  const jobs = new Set<string>();
  const from = { afterOffset: logStart, subjects: [eventSubject(nameOf(source), "jobs", "job.queued")] };
  for await (const { event } of log().history(from, await positions.lastOffset(), signal)) {
    jobs.add(event.subject);
    if (jobs.size > count) return true;
  }
  return false;
}

/** The request as it goes to Vagrant. */
function forwardedRequest(method: WriteName, request: Uint8Array): Uint8Array {
  if (method !== "queueJob" && method !== "validateJob") return request;
  try {
    return withoutServerFields(request);
  } catch {
    throw unreadableRequest();
  }
}
