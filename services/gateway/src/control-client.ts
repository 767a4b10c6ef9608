import { type ControlCall, ControlCall as ControlCallCodec, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlTimeouts } from "@tapedeck/shared/control-timeouts";
import { isErrorCode, TapedeckError } from "@tapedeck/shared/errors/errors";
import { controlSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { errors } from "nats";
import type { LiveNatsConnection } from "./log-link.ts";

/** Control calls go to the ingest that holds the source. */
export type ControlClient = {
  /**
   * The upstream's answer, whatever its code. Nothing is queued for long: Skaffold's Handle blocks while its event side
   * stalls, and calls behind it are refused.
   * @throws TapedeckError upstream_away at once when no ingest holds the source, or when no answer comes;
   * not_ready while NATS is away
   */
  call(source: SourceName, call: ControlCall): Promise<ControlReply>;
};

export function controlClient(nats: () => LiveNatsConnection): ControlClient {
  return {
    async call(source, call) {
      const reply = await ask(nats(), source, call);
      if (reply.reason !== "") {
        const code = isErrorCode(reply.reason) ? reply.reason : "internal";
        throw new TapedeckError(code, reply.message);
      }
      return reply;
    },
  };
}

async function ask(
  { connection, broken }: LiveNatsConnection,
  source: SourceName,
  call: ControlCall,
): Promise<ControlReply> {
  const pending = connection.request(controlSubject(source), ControlCallCodec.encode(call).finish(), {
    timeout: controlTimeouts.callerMs,
  });
  try {
    return ControlReply.decode((await abortable(pending, broken)).data);
  } catch (cause) {
    pending.catch(() => {}); // the request may outlive its connection
    const nobody = cause instanceof errors.RequestError && cause.isNoResponders();
    const text = nobody
      ? `${source} is not being recorded now, so the call can't reach it: start its tap (tapedeck run, or tapedeck up) and try again`
      : `${source} did not answer the call in time; whether it acted is not known`;
    throw new TapedeckError("upstream_away", text, {}, { cause });
  }
}
