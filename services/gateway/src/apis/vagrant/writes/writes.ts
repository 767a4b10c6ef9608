import type { Source } from "@tapedeck/proto/tapedeck/v1/lists";
import { GetVersionInfoResponse, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { eventSubject } from "@tapedeck/shared/log/subjects";
import type { CallContext } from "../../../call-context.ts";
import type { ControlClient } from "../../../control-client.ts";
import { type ControlDeps, controlCall } from "../../control.ts";
import { nameOf } from "../../resolve-source.ts";
import type { ScopeDeps } from "../../session-scope.ts";
import { UpstreamError } from "../../upstream-error.ts";
import { unreadableRequest } from "../errors.ts";
import { read } from "../read.ts";
import { withoutServerFields } from "../wire.ts";
import { dangerOf } from "./safety-guard.ts";
import type { WriteName } from "./write-names.ts";

export type WriteDeps = ScopeDeps & ControlDeps & { readonly control: ControlClient };

/** The upstream's answer to request bytes, as it gave it. */
export type Write = (method: WriteName, request: Uint8Array, context: CallContext) => Promise<Uint8Array>;

/**
 * Writes, by the control path. What is dangerous (docs/upstreams/vagrant.md#dangerous-requests) is refused before
 * anything is sent.
 * @throws UpstreamError the upstream's own refusal, with its code and text
 * @throws TapedeckError refused_dangerous, upstream_away, and those of the source and session that the call means
 */
export function writing({ query, log, control, positions, refused }: WriteDeps): Write {
  async function call(method: WriteName, request: Uint8Array, context: CallContext, source: Source) {
    const { path } = VagrantService[method];
    const danger = await dangerOf(method, request, {
      version: () => versionOf(context),
      hasMoreJobsThan: (count) => hasMoreJobsThan(count, source, context.signal),
    });
    if (danger !== undefined) throw new TapedeckError("refused_dangerous", danger);
    const reply = await control.call(nameOf(source), {
      method: path,
      request: Buffer.from(request),
      forwarded_method: path,
      forwarded_request: Buffer.from(forwarded(method, request)),
      who: context.who,
    });
    if (reply.code !== 0) throw new UpstreamError(reply.code, reply.message);
    return reply.response;
  }

  /** By the record as it is now. */
  async function versionOf(context: CallContext): Promise<string> {
    const minPosition = positions.written(await positions.lastSeq());
    const { rows } = await read({ query }, "version", { ...context, minPosition });
    return GetVersionInfoResponse.decode(rows[0]?.bytes ?? new Uint8Array()).info?.version ?? "";
  }

  /** Reads no more of the log than it takes to know. */
  async function hasMoreJobsThan(count: number, source: Source, signal: AbortSignal): Promise<boolean> {
    const jobs = new Set<string>();
    const from = { afterSeq: 0, subjects: [eventSubject(nameOf(source), "jobs", "job.queued")] };
    for await (const { event } of log().history(from, await positions.lastSeq(), signal)) {
      jobs.add(event.subject);
      if (jobs.size > count) return true;
    }
    return false;
  }

  return (method, request, context) => {
    const what = { upstream: "vagrant", method: VagrantService[method].path } as const;
    return controlCall({ query, refused }, what, context, (source) => call(method, request, context, source));
  };
}

/** The request as it goes to Vagrant. */
function forwarded(method: WriteName, request: Uint8Array): Uint8Array {
  if (method !== "queueJob" && method !== "validateJob") return request;
  try {
    return withoutServerFields(request);
  } catch {
    throw unreadableRequest();
  }
}
