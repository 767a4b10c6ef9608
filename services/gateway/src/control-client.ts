import { type ControlCall, ControlCall as ControlCallCodec, ControlReply } from "@tapedeck/proto/tapedeck/v1/recorder";
import { isErrorCode, TapedeckError } from "@tapedeck/shared/errors/errors";
import { controlSubject } from "@tapedeck/shared/log/subjects";
import type { SourceName } from "@tapedeck/shared/source";
import { errors, type NatsConnection } from "nats";

/** Control goes the other way (DESIGN 8): to the ingest that holds the source. */
export type ControlClient = {
  /** The upstream's answer, whatever its code. `upstream_away` at once when nobody holds the source; nothing queued. */
  call(source: SourceName, call: Omit<ControlCall, "$unknown">): Promise<ControlReply>;
};

/** Skaffold's Handle blocks for as long as its event side is stalled; the ingest gives up after 30 s. */
const timeoutMs = 35_000;

export function controlClient(nats: NatsConnection): ControlClient {
  return {
    async call(source, call) {
      const reply = await ask(nats, source, call);
      if (reply.reason !== "") {
        const code = isErrorCode(reply.reason) ? reply.reason : "internal";
        throw new TapedeckError(code, reply.message);
      }
      return reply;
    },
  };
}

async function ask(nats: NatsConnection, source: SourceName, call: Omit<ControlCall, "$unknown">) {
  try {
    const answer = await nats.request(controlSubject(source), ControlCallCodec.encode(call).finish(), {
      timeout: timeoutMs,
    });
    return ControlReply.decode(answer.data);
  } catch (cause) {
    const nobody = cause instanceof errors.RequestError && cause.isNoResponders();
    const text = nobody
      ? `${source} is not being recorded now, so the call can't reach it: start its tap (tapedeck run, or tapedeck up) and try again`
      : `${source} did not answer the call in time; whether it acted is not known`;
    throw new TapedeckError("upstream_away", text, {}, { cause });
  }
}
