import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { LogReplacedError } from "@tapedeck/shared/log/log";
import type { SendOutcome } from "../definition.ts";
import type { Format } from "../format/format.ts";
import { isSuccess, type ReceivedAnswer, type TargetAnswer } from "../target/http-target.ts";

/** What an answer means for what was sent. */
export type AnswerClass =
  | { readonly type: "accepted" }
  /**
   * `isFinal`: the same request will be answered the same way. `isAway`: nothing has answered that could have an opinion of the
   * event, or it asks to come later. `retryAfterMs`: what the target asks for.
   */
  | {
      readonly type: "refused";
      readonly isFinal: boolean;
      readonly isAway: boolean;
      readonly status: number | undefined;
      readonly error: string;
      readonly retryAfterMs: number | undefined;
    };

export type Refused = Extract<AnswerClass, { readonly type: "refused" }>;

/** Statuses of 4xx that go away by themselves: a timeout, too early, too many. */
const passing: readonly number[] = [408, 425, 429];

/** With these a target, or what stands before it, says that nobody has looked at the request. */
const away: readonly number[] = [...passing, 503];

/** The longest wait that a target may ask for. */
const maxRetryAfterMs = 3_600_000;

/** An answer's text in an error. */
const maxShown = 200;

export function classOf(answer: TargetAnswer, now: Date, { errorIn }: Pick<Format, "errorIn">): AnswerClass {
  if (answer.type === "failure") {
    const { error, reached } = answer;
    return { type: "refused", isFinal: false, isAway: !reached, status: undefined, error, retryAfterMs: undefined };
  }
  const { status } = answer;
  if (isSuccess(status) && answer.isCut === true && errorIn !== undefined) {
    // What was not read may say that it is a refusal.
    const error = `answered ${status}, without an end`;
    return { type: "refused", isFinal: false, isAway: false, status: undefined, error, retryAfterMs: undefined };
  }
  const stated = errorIn?.(answer);
  if (isSuccess(status) && stated === undefined) return { type: "accepted" };
  const isFinal = status < 500 && !passing.includes(status);
  return {
    type: "refused",
    isFinal,
    isAway: away.includes(status),
    status,
    error: errorText(answer, stated),
    retryAfterMs: retryAfterMs(answer.retryAfter, now),
  };
}

/** A 5xx may be the event's fault, and counts as refused. */
export function outcomeOf(answer: AnswerClass): SendOutcome {
  if (answer.type === "accepted") return "delivered";
  const isUnanswered = answer.status === undefined && !answer.isFinal;
  return answer.isAway || isUnanswered ? "away" : "refused";
}

/**
 * An event that its format can't write, such as one with an impossible time, is refused for good.
 * @throws the cause, if it is an error of the log
 */
export function unwritten(cause: unknown): Refused {
  if (cause instanceof TapedeckError || cause instanceof LogReplacedError) throw cause;
  const error = `the event can't be written: ${cause instanceof Error ? cause.message : String(cause)}`;
  return { type: "refused", isFinal: true, isAway: false, status: undefined, error, retryAfterMs: undefined };
}

/** Seconds, or a date of HTTP; undefined for anything else. */
export function retryAfterMs(text: string | undefined, now: Date): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1_000 : Date.parse(text) - now.getTime();
  return Number.isNaN(ms) ? undefined : Math.min(maxRetryAfterMs, Math.max(0, ms));
}

function errorText({ status, body }: ReceivedAnswer, stated: string | undefined): string {
  if (status >= 300 && status < 400) return `answered ${status}: redirects are not followed`;
  const [first = ""] = (stated ?? body.toString("utf8"))
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .match(new RegExp(`^.{0,${maxShown}}`, "u")) ?? [""];
  return first === "" ? `answered ${status}` : `answered ${status}: ${first}`;
}

/** Statuses that are about a request's content. Others of 4xx are about the target: its address, or the right to call it. */
const aboutContent: readonly number[] = [400, 409, 413, 415, 422];

/** What Slack, Mattermost and Rocket.Chat answer with 400, too, when a webhook is gone, or the user or channel that it posts as or to. */
const aboutWebhook =
  /: user_not_found$|web\.incoming_webhook\.(?:invalid|disabled|user|channel|permissions)|Invalid integration id or token/;

/** Whether an answer is about what a request says, and not about the target. An event that can't be written needs none. */
export function isAboutContent({ status, isFinal, error }: Refused): boolean {
  if (status === undefined) return isFinal;
  return aboutContent.includes(status) && !aboutWebhook.test(error);
}
