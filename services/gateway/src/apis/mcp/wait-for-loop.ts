import type { EventJson } from "@tapedeck/shared/events/json";
import { parseFilter } from "@tapedeck/shared/filter/filter";
import { delay } from "@tapedeck/shared/sync/delay";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { z } from "zod";
import { lateOnV2 } from "../skaffold/late-on-v2.ts";
import { comparisonJson } from "../tapedeck/compare/comparison-json.ts";
import { allOf } from "../tapedeck/messages.ts";
import { when } from "../tapedeck/parameter-schemas.ts";
import { Answer, loopName, quoted, sourceText, tokensField } from "./answer.ts";
import { assertRecorded, sourceField } from "./named-side.ts";
import { type McpCall, tool } from "./tool.ts";
import { whyText } from "./why-failed.ts";

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
    seconds: z.int().min(0).max(maxSeconds).default(45).describe("The longest wait."),
    tokens: tokensField,
  }),
  async answer({ source, after, seconds, tokens }, call) {
    call.waits();
    await assertRecorded(call, source);
    const { position, ended } = await nextEnd(call, { source, after, ms: seconds * 1_000 });
    if (ended === undefined) {
      const answer = new Answer(tokens);
      answer.add(`Nothing has ended in ${seconds} s${source === undefined ? "" : ` in ${source}`}.`);
      answer.add(`Ask again with after ${position}: nothing is missed between two calls.`);
      return answer.end({ position, page: `${call.page}/`, again: "`after` it the wait goes on" });
    }
    return endText(call, ended, tokens);
  },
});

/** How what ended went, and why. */
async function endText(call: McpCall, event: EventJson, tokens: number): Promise<string> {
  const { position, source, session = "", kind, outcome, operation } = event;
  const context = { ...call.context, minPosition: await completeAt(call, event) };
  const foot = { position, again: "wait `after` it for the next" };
  const isCommand = kind === "command.finished";
  if (isCommand && outcome !== "failed") {
    const answer = new Answer(tokens);
    answer.add(`${sourceText(source)}: command ${quoted(String(operation?.subject ?? ""))} ${outcome ?? "is over"}.`);
    return answer.end({ ...foot, page: `${call.page}/sessions/${session}?at=${position}` });
  }
  const left = loopOf(event) ?? `${isCommand ? source : session}@${position}`;
  const comparison = comparisonJson(await call.apis.tapedeck.compare(context, { left }));
  const isOver = kind === "session.ended" || kind === "session.lost";
  const how = isOver ? `The process is over: ${quoted(event.summary)}.` : undefined;
  return whyText(call, comparison, tokens, { ...foot, how });
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

type Wait = { readonly source: string | undefined; readonly after: string | undefined; readonly ms: number };

/** The first end after the position, and the position up to which all ends are known. */
async function nextEnd(
  { apis, context }: McpCall,
  { source, after = "now", ms }: Wait,
): Promise<{ readonly position: string; readonly ended?: EventJson }> {
  const filter = { kinds: endings, ...(source !== undefined && { sources: [source] }) };
  // What is over already is found by the index of the log, sooner than by following it.
  const { workspace } = context;
  const page = { workspace, filter: parseFilter(filter), after, limit: 1, signal: context.signal };
  const known = await apis.tapedeck.events(page, context);
  const [ended] = known.items;
  if (ended !== undefined) return { position: ended.position, ended };
  const signal = AbortSignal.any([context.signal, timeoutSignal(ms)]);
  const from = known.nextPage ?? known.position;
  const opened = await apis.tapedeck.subscribe({ after: from, filter }, { ...context, signal });
  let { position } = opened;
  for await (const some of opened.messages) {
    for (const message of allOf(some)) {
      ({ position } = message);
      if (message.type !== "event") continue;
      const { event } = JSON.parse(message.json) as { readonly event: EventJson };
      return { position, ended: event };
    }
  }
  context.signal.throwIfAborted();
  return { position };
}
