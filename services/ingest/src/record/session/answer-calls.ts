import { Observed } from "@tapedeck/proto/tapedeck/v1/observed";
import { ControlCall, ControlReply, type ControlRequest } from "@tapedeck/proto/tapedeck/v1/recorder";
import { adoptSubject, controlSubject } from "@tapedeck/shared/log/subjects";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { SourceName } from "@tapedeck/shared/source";
import type { NatsConnection } from "nats";
import type { Normalizer } from "../../normalize/normalizer.ts";
import type { PushResponses } from "../push-responses.ts";
import { ControlCalls, notConnected } from "./control.ts";
import { StreamRelays } from "./relay-streams.ts";
import type { SessionRecorder } from "./session-recorder.ts";

export type AnswerOptions = {
  readonly nats: NatsConnection;
  readonly source: SourceName;
  readonly normalizer: Normalizer;
  readonly recorder: SessionRecorder;
  readonly responses: PushResponses;
  readonly logger: Logger;
  /** See ControlOptions. */
  readonly loopStartMs: number | undefined;
  readonly signal: AbortSignal;
};

/** Makes the control calls that clients ask for, and opens their streams. Gives what ends it. */
export function answerControl({ nats, source, logger, responses, ...options }: AnswerOptions): () => void {
  const onError = (err: unknown) => logger.warn({ source, err }, "a control call could not be recorded");
  const ask = (request: ControlRequest) => responses.ask(request);
  const control = new ControlCalls({
    ...options,
    ask,
    isCommitted: (index, withinMs) => responses.isCommitted(index, withinMs),
    onError,
  });
  const streams = new StreamRelays({ nats, responses, signal: options.signal });
  const make = async (call: ControlCall): Promise<ControlReply> => {
    if (call.stream === undefined) return control.make(call);
    return options.recorder.connected ? streams.open(call.stream, call.method) : notConnected;
  };
  const subscription = nats.subscribe(controlSubject(source), {
    callback: (error, message) => {
      if (error !== null) return;
      const answer = async () => ControlReply.encode(await make(ControlCall.decode(message.data))).finish();
      answer()
        // Throws if the answer exceeds the message limit or the connection is closed.
        .then((reply) => void message.respond(reply))
        .catch((err: unknown) => {
          onError(err);
          const reply = { code: 14, message: "the call could not be recorded", response: Buffer.alloc(0) };
          message.respond(ControlReply.encode({ ...reply, reason: "not_ready" }).finish());
        })
        .catch(onError);
    },
  });
  // A call that is on its way here is answered, so that its caller does not wait for nothing.
  return () => void subscription.drain().catch(() => {});
}

/** Adopts the states that query requests. Gives what ends it. */
export function adoptStates({ nats, source, recorder, logger }: AnswerOptions): () => void {
  const subscription = nats.subscribe(adoptSubject(source), {
    callback: (error, message) => {
      if (error !== null) return;
      try {
        recorder.adopt(Observed.decode(message.data));
      } catch (err) {
        logger.warn({ source, err }, "a state could not be adopted");
      }
    },
  });
  return () => subscription.unsubscribe();
}
