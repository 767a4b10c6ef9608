import { RunnerConfigRequest, RunnerJobStreamRequest, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { abortable } from "@tapedeck/shared/sync/abortable";
import type { StreamClient } from "../../stream-client.ts";
import { controlCall } from "../control.ts";
import type { UpstreamAnswers } from "../encoded-answer.ts";
import { nameOf } from "../resolve-source.ts";
import { unreadableRequest } from "./errors.ts";
import type { RunnerName, RunnerStream } from "./methods.ts";
import { readableEffect, type WriteDeps } from "./writes.ts";

export type RunnerDeps = WriteDeps & { readonly streams: StreamClient };

/**
 * A runner's stream, which the running server serves. It goes through ingest and tap, because a server on a laptop has no
 * address. A control call: it needs the role, and is in the audit log. What a message of the server, or the end of the
 * stream, has changed is readable before it is passed on, as after a write.
 * @throws UpstreamError the server's status; UNAVAILABLE when the tap or the server goes away
 * @throws TapedeckError refused_dangerous, upstream_away, limit_exceeded, and the errors of resolving the source
 */
export function runnerStream(deps: RunnerDeps, name: RunnerName): RunnerStream {
  const { path } = VagrantService[name];
  return (messages, context) =>
    controlCall(deps, { upstream: "vagrant", method: path }, context, async (source): Promise<UpstreamAnswers> => {
      const refused = new AbortController();
      const requests = harmless(name, messages, (error) => refused.abort(error));
      const { who, signal } = context;
      const stream = await deps.streams.open({ source: nameOf(source), method: path, who, requests, signal });
      const readable = (effect_ms: number | undefined) => readableEffect(deps, source, effect_ms, context);
      async function* answers() {
        try {
          for (;;) {
            const { value, done } = await abortable(stream.next(), refused.signal);
            await readable(typeof value === "object" ? value.effect_ms : value);
            if (done) return;
            yield value.bytes;
          }
        } finally {
          // Not awaited: the stream may be waiting for its next message.
          void stream.return(undefined).catch(() => {});
        }
      }
      return { messages: answers() };
    });
}

/** The messages up to the first one that would end the server, which is reported and not passed on. */
async function* harmless(
  name: RunnerName,
  messages: AsyncIterable<Uint8Array>,
  refuse: (error: Error) => void,
): AsyncGenerator<Uint8Array, void> {
  for await (const bytes of messages) {
    const refusal = refusalOf(name, bytes);
    if (refusal !== undefined) {
      refuse(refusal);
      return;
    }
    yield bytes;
  }
}

function refusalOf(name: RunnerName, bytes: Uint8Array): Error | undefined {
  const danger = (text: string) => new TapedeckError("refused_dangerous", text);
  try {
    if (name === "runnerConfig") {
      const { event } = RunnerConfigRequest.decode(bytes);
      const isDangerous = event !== undefined && event.value.runner === undefined;
      return isDangerous ? danger("RunnerConfig that opens without a runner crashes Vagrant") : undefined;
    }
    const { event } = RunnerJobStreamRequest.decode(bytes);
    const isDangerous = event?.$case === "error" && event.value.error === undefined;
    return isDangerous ? danger("RunnerJobStream with an error that has no status crashes Vagrant") : undefined;
  } catch {
    return unreadableRequest();
  }
}
