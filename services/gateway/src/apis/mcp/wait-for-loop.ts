import type { EventJson } from "@tapedeck/shared/events/json";
import { parseFilter } from "@tapedeck/shared/filter/filter";
import { delay } from "@tapedeck/shared/sync/delay";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { z } from "zod";
import { lateOnV2 } from "../skaffold/late-on-v2.ts";
import type { AnswerOf } from "../tapedeck/answers.ts";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { listsJson } from "../tapedeck/lists.ts";
import { allOf } from "../tapedeck/messages.ts";
import { position, when } from "../tapedeck/parameter-schemas.ts";
import { Answer, loopName, quoted, sourceText, tokensField } from "./answer.ts";
import { assertRecorded, sourceField } from "./named-side.ts";
import { type McpCall, type ToolCall, tool } from "./tool.ts";
import { laterOutput, whyText } from "./why-failed.ts";

const afterField = when(["start", "now", "position"], "is not a position, nor start or now");

/** Clients wait for a minute. */
const maxSeconds = 50;

/** With these a loop, a command, or all that a process does is over. */
const endings = ["loop.succeeded", "loop.failed", "command.finished", "session.ended", "session.lost"];

export const waitForLoop = tool({
  name: "wait_for_loop",
  title: "Wait for the next loop",
  description:
    "Waits until a dev loop (or a command of Vagrant, or the whole process) ends after a position, and says how it went and why. " +
    "Give as `after` the position of an answer from before your change, so that a loop that is over already counts. " +
    `Waits ${maxSeconds} s at most: if nothing has ended, ask again with the position of the answer.`,
  input: z.strictObject({
    source: sourceField.optional().describe("`alice/shop`, or with `/upstream`. Default: any source."),
    after: afterField.optional().describe("A position: what ended after it counts. Default: now."),
    at: position.optional().describe("A position: answer as of then, without a wait."),
    seconds: z.int().min(0).max(maxSeconds).default(45).describe("The longest wait."),
    tokens: tokensField,
  }),
  async answer({ source, after, at, seconds, tokens }, call) {
    call.waits();
    await assertRecorded(call, source);
    const found = await nextEnd(call, { source, after, at, ms: seconds * 1_000 });
    const { position, ended, from } = found;
    if (ended === undefined) {
      const answer = new Answer(tokens);
      answer.add(`Nothing has ended in ${seconds} s${source === undefined ? "" : ` in ${source}`}.`);
      answer.add(`Wait on with after ${position}: nothing is missed between two calls.`);
      return answer.end({ position, again: call.again({ after: from, at: position }) });
    }
    return endText(call, { event: ended, from, at, tokens });
  },
});

type End = {
  readonly event: EventJson;
  /** The position after which it was waited for. */
  readonly from: string;
  readonly at: string | undefined;
  readonly tokens: number;
};

/** How what ended went, and why. */
async function endText(call: ToolCall, { event, from, at, tokens }: End): Promise<string> {
  const { position, source, session = "", kind } = event;
  const context = { ...call.context, minPosition: at ?? (await completeAt(call, event)) };
  const isOver = kind === "session.ended" || kind === "session.lost";
  const over = isOver ? [`${overText[kind]}: ${quoted(event.summary)}.`] : [];
  const last = isOver ? await lastUnit(call, session, position) : undefined;
  const command = kind === "command.finished" ? commandOf(event) : last?.kind === "command" ? last : undefined;
  if (command !== undefined && command.outcome !== "failed") {
    const answer = new Answer(tokens);
    answer.add(...over, `${sourceText(source)}: command ${quoted(command.subject)} ${howText(command.outcome)}.`);
    const page = { address: `${call.page}/sessions/${session}?at=${position}` };
    return answer.end({ position, again: call.again({ after: from, at: at ?? position }), page });
  }
  const lastLoop = last?.kind === "loop" ? loopName(last) : undefined;
  const left = loopOf(event) ?? lastLoop ?? `${session}@${position}`;
  const comparison = comparisonJson(await call.apis.tapedeck.compare(context, { left, at }));
  const { unit, position: end } = comparison.left;
  const isAgain = unit === "loop" && end !== position && !isOver;
  const how = isAgain ? `It ended at ${position} and, tried again, at ${end}. This is how it was then.` : over[0];
  const again = `${call.again({ after: from, at: comparison.position })}${laterOutput(comparison)}`;
  return whyText(call, comparison, tokens, { position, again, how });
}

const overText = {
  "session.ended": "The process is over",
  "session.lost": "The process is recorded no longer, and whether it goes on is not known",
} as const;

function commandOf({ operation, outcome }: EventJson) {
  return { subject: String(operation?.subject ?? ""), outcome: outcome ?? null };
}

function howText(outcome: string | null): string {
  if (outcome === "succeeded") return "succeeded";
  return outcome === "canceled" ? "was canceled" : "has no known outcome";
}

/** The last loop or command of a process. What failed before may have been good again since. Undefined: it had none. */
async function lastUnit({ apis, context }: McpCall, session: string, at: string) {
  const request = { session: [session], kind: ["loop" as const, "command" as const], limit: 1, at };
  const { items } = await listsJson(apis.tapedeck.lists).operations(context, request);
  return (items as AnswerOf<"Operation">[])[0];
}

/** v2 of Skaffold may report a little later what belongs to a loop, such as its rendering. */
const lateMs = 1_000;
const pollMs = 50;

/** Where everything is recorded that belongs to what ended; or what is after a moment, where only v1 is recorded. */
async function completeAt({ apis, context }: McpCall, event: EventJson): Promise<string> {
  const { position, session = "", kind, operation, channel } = event;
  if (!kind.startsWith("loop.") || operation === undefined || channel !== "v1") return position;
  const { workspace, signal } = context;
  const loop = { session, runner: Number(operation.runner), loop: Number(operation.loop), end: position };
  const dueAt = Date.parse(event.recordedAt) + lateMs;
  const waitsUntil = performance.now() + lateMs;
  for (;;) {
    const late = await lateOnV2((page) => apis.tapedeck.events(page, context), loop, { workspace, signal });
    if (late.isOver || Date.now() > dueAt || performance.now() > waitsUntil) return late.position;
    await delay(pollMs, signal);
  }
}

function loopOf({ session = "", kind, operation }: EventJson): string | undefined {
  if (!kind.startsWith("loop.") || operation === undefined) return undefined;
  return loopName({ session, runner: Number(operation.runner), loop: Number(operation.loop) });
}

type Wait = {
  readonly source: string | undefined;
  readonly after: string | undefined;
  readonly at: string | undefined;
  readonly ms: number;
};

/** `from`: after which it was waited for. `position`: up to which all ends are known. */
type Waited = { readonly from: string; readonly position: string; readonly ended?: EventJson };

/** The first end after the position. */
async function nextEnd({ apis, context }: McpCall, { source, after = "now", at, ms }: Wait): Promise<Waited> {
  const filter = { kinds: endings, ...(source !== undefined && { sources: [source] }) };
  // What is over already is found by the index of the log, sooner than by following it.
  const { workspace } = context;
  const range = { after, limit: 1, signal: context.signal, ...(at !== undefined && { until: at }) };
  const page = { workspace, filter: parseFilter(filter), ...range };
  const known = await apis.tapedeck.events(page, context);
  const [ended] = known.items;
  const begin = after === "now" ? known.position : after;
  if (ended !== undefined) return { from: begin, position: ended.position, ended };
  // A page may end before.
  if (at !== undefined) return { from: begin, position: known.nextPage ?? at };
  const signal = AbortSignal.any([context.signal, timeoutSignal(ms)]);
  const from = known.nextPage ?? known.position;
  const opened = await apis.tapedeck.subscribe({ after: from, filter }, { ...context, signal });
  let { position } = opened;
  for await (const some of opened.messages) {
    for (const message of allOf(some)) {
      ({ position } = message);
      if (message.type !== "event") continue;
      const { event } = JSON.parse(message.json) as { readonly event: EventJson };
      return { from: begin, position, ended: event };
    }
  }
  context.signal.throwIfAborted();
  return { from: begin, position };
}
