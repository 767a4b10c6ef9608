import { connect, TapedeckError } from "@tapedeck/client";
import { lineOfCause } from "@tapedeck/client/lanes/loop";
import { textKinds } from "@tapedeck/shared/events/kinds";
import { type ApiClient, apiAt } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { printGap } from "../../display/gap.ts";
import { jsonText, print, printError } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";
import { type Scope, scopeOf } from "./scope.ts";
import type { TextEvent } from "./text-event.ts";
import { TextLines } from "./text-lines.ts";

export type LogsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly session?: string;
  readonly loop?: string;
  readonly failed?: boolean;
  readonly artifact?: readonly string[];
  readonly pod?: readonly string[];
  readonly app?: readonly string[];
  readonly job?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly tail?: number;
  readonly last?: number;
  readonly follow?: boolean;
  readonly timestamps?: boolean;
};

/** Prints the text of a session, a loop, a failed step, or of a time, and follows it. */
export async function logs(what: string | undefined, options: LogsOptions): Promise<void> {
  const api = apiAt(options.url);
  const { source, session, loop, failed } = options;
  const scope = await scopeOf(api, { what, source, session, loop, failed });
  const last = new LastLines(options.tail ?? options.last);
  const text = new TextLines();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const { failure } = scope;
  // What failed is read to its end before anything of it is taken.
  const onCaughtUp = () => (failure === undefined ? last.release() : undefined);
  const written = eventsOf(api, scope, { ...options, signal: stop.signal, onCaughtUp });
  for await (const event of failure === undefined ? written : await printedByFailed(written, failure)) {
    if (!matches(event, options)) continue;
    if (options.json) last.take(jsonText(event));
    else
      for (const line of text.take(originOf(event), event.detail?.text ?? ""))
        last.take(lineOf(line, options.timestamps ? event : undefined));
  }
  for (const line of text.rest()) last.take(lineOf(line, undefined));
  last.release();
  if (last.taken === 0 && !stop.signal.aborted) printError("no output matches");
}

/** What the failed step printed, by the strictest attribution that has the line with the cause. */
async function printedByFailed(
  written: AsyncIterable<TextEvent>,
  { cause, attributions }: NonNullable<Scope["failure"]>,
): Promise<readonly TextEvent[]> {
  const all: TextEvent[] = [];
  for await (const event of written) all.push(event);
  const candidates = attributions.map((isOf) => all.filter(isOf));
  const hasCause = (events: readonly TextEvent[]) => {
    const lines = events
      .map(({ detail }) => detail?.text ?? "")
      .join("")
      .split("\n");
    return cause === "" ? events.length > 0 : lineOfCause(lines.map(plainLine), cause) >= 0;
  };
  return candidates.find(hasCause) ?? candidates.find(({ length }) => length > 0) ?? [];
}

type Reading = Pick<LogsOptions, "since" | "until" | "follow"> & {
  readonly signal?: AbortSignal;
  readonly onCaughtUp?: () => void;
};

async function* eventsOf(
  { base: url, token }: ApiClient,
  scope: Scope,
  { since, until, follow = false, signal, onCaughtUp }: Reading,
): AsyncGenerator<TextEvent, void> {
  // `-f` follows the source into its next session.
  const isSession = since === undefined && !follow;
  const filter = isSession ? { sessions: [scope.session] } : { sources: [scope.source] };
  const after = since ?? scope.after ?? "start";
  const reading = { ...filter, kinds: textKinds, after, onGap: printGap, ...(signal !== undefined && { signal }) };
  using client = connect({ url, ...(token !== undefined && { token }) });
  try {
    const end = until ?? scope.until ?? "now";
    for await (const message of client.subscribe(follow ? reading : { ...reading, until: end })) {
      if (message.type === "caught_up" || message.type === "complete") onCaughtUp?.();
      if (message.type !== "event") continue;
      const event = message.event as unknown as TextEvent;
      if (event.detail?.noise !== true && scope.has(event)) yield event;
    }
  } catch (error) {
    throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  }
}

/** Whether the text matches the options; every given option has to match. */
function matches({ subject = "", detail = {} }: TextEvent, { artifact, pod, app, job }: LogsOptions): boolean {
  const { pod: itsPod = "", container = "", subtask = "" } = detail;
  const fits = (names: readonly string[] | undefined, is: (name: string) => boolean) => names?.some(is) ?? true;
  return (
    fits(artifact, (name) => [subject, container, subtask].includes(name)) &&
    fits(pod, (name) => itsPod.startsWith(name)) &&
    fits(app, (name) => container === name) &&
    fits(job, (name) => subject === name)
  );
}

/** The printer of the text: a container, an app of a pod, a build, a job; empty for the tool itself. */
function originOf({ subject = "", detail = {} }: TextEvent): string {
  const { pod = "", container = "" } = detail;
  if (pod === "") return subject;
  return container === "" || subject.includes("/") ? `${pod.slice(0, 8)}${container && `/${container}`}` : container;
}

/** `at`: the event that ended the line, whose time begins it. */
function lineOf({ origin, text }: { readonly origin: string; readonly text: string }, at?: TextEvent): string {
  const line = origin === "" ? text : `${coloured("cyan", `${origin} |`)} ${text}`;
  return at === undefined ? line : `${coloured("dim", at.occurredAt ?? at.recordedAt)} ${line}`;
}

/** Holds back lines as long as only the last few of them are wanted. */
class LastLines {
  readonly #max: number | undefined;
  #held: string[] = [];
  #taken = 0;
  #isLive = false;

  constructor(max: number | undefined) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  take(line: string): void {
    this.#taken++;
    if (this.#isLive || this.#max === undefined) {
      print(line);
      return;
    }
    this.#held.push(line);
    // Seldom, as each time costs all of it.
    if (this.#held.length > 2 * this.#max + 1_000) this.#held = this.#held.slice(-this.#max);
  }

  /** All that was recorded before is there. */
  release(): void {
    if (this.#max !== undefined) for (const line of this.#held.slice(-this.#max)) print(line);
    this.#held = [];
    this.#isLive = true;
  }
}
