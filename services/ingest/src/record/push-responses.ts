import type { ControlAnswer, ControlRequest, PushResponse } from "@tapedeck/proto/tapedeck/v1/recorder";
import { controlPatience } from "@tapedeck/shared/control-patience";
import { pause } from "@tapedeck/shared/sync/delay";

/** What goes down a push stream beside the welcome: how far all is in the log, and control calls. */
export type Responses = {
  /** Ends with `end`; throws what was given to it. */
  stream(): AsyncGenerator<PushResponse, void>;
  /** `committed()` may have grown. */
  committedMoved(): void;
  /** Tells which session is recorded. */
  sessionFound(session: string): void;
  /** Sends a control call down and waits for its answer; code 14 when the stream ends before. */
  ask(request: ControlRequest): Promise<ControlAnswer>;
  answered(answer: ControlAnswer): void;
  end(cause?: unknown): void;
};

export function responses(before: bigint, committed: () => bigint): Responses {
  const questions: ControlRequest[] = [];
  const sessions: string[] = [];
  const waiting = new Map<string, (answer: ControlAnswer) => void>();
  let wake = Promise.withResolvers<void>();
  let ended: { readonly cause: unknown } | undefined;

  return {
    async *stream() {
      for (let told = before; ; ) {
        const index = committed();
        const question = questions.shift();
        const session = sessions.shift();
        if (index > told) {
          told = index;
          yield { body: { $case: "committed", value: { index } } };
        }
        if (question !== undefined) yield { body: { $case: "control", value: question } };
        if (session !== undefined) yield { body: { $case: "session_found", value: { session } } };
        if (index > told || question !== undefined || session !== undefined || committed() > told) continue;
        if (ended !== undefined) {
          if (ended.cause !== undefined) throw ended.cause;
          return;
        }
        await wake.promise;
        wake = Promise.withResolvers();
      }
    },
    committedMoved: () => wake.resolve(),
    sessionFound(session) {
      sessions.push(session);
      wake.resolve();
    },
    async ask(request) {
      const { call } = request;
      if (ended !== undefined) return failed(call, 14, "the tap is away");
      const { promise, resolve } = Promise.withResolvers<ControlAnswer>();
      waiting.set(call, resolve);
      questions.push(request);
      wake.resolve();
      const over = new AbortController();
      const late = pause(controlPatience.tapMs, over.signal).then(() =>
        failed(call, 4, "the upstream did not answer in time"),
      );
      const answer = await Promise.race([promise, late]);
      over.abort();
      waiting.delete(call);
      return answer;
    },
    answered: (answer) => waiting.get(answer.call)?.(answer),
    end(cause) {
      ended ??= { cause };
      for (const [call, resolve] of waiting) resolve(failed(call, 14, "the tap went away before it answered"));
      wake.resolve();
    },
  };
}

function failed(call: string, code: number, message: string): ControlAnswer {
  return { call, code, message, response: Buffer.alloc(0) };
}
