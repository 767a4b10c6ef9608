import { connect, TapedeckError } from "@tapedeck/client";
import { textKinds } from "@tapedeck/shared/events/kinds";
import { type ApiClient, apiAt } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { printGap } from "../../display/gap.ts";
import { jsonText, print, printError } from "../../display/output.ts";
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
  const isShown = await shownOf(api, scope, options);
  const last = new LastLines(options.tail ?? options.last);
  const text = new TextLines();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const release = () => last.release();
  for await (const event of eventsOf(api, scope, { ...options, signal: stop.signal, onCaughtUp: release })) {
    if (!isShown(event)) continue;
    if (options.json) last.take(jsonText(event));
    else
      for (const line of text.take(originOf(event), event.detail?.text ?? ""))
        last.take(lineOf(line, options.timestamps ? event : undefined));
  }
  for (const line of text.rest()) last.take(lineOf(line, undefined));
  last.release();
  if (last.taken === 0 && !stop.signal.aborted) printError("no output matches");
}

/** What a scope has, unless the options leave it out. */
async function shownOf(api: ApiClient, scope: Scope, options: LogsOptions): Promise<(event: TextEvent) => boolean> {
  const { has, hasElse } = scope;
  const isMeant = (event: TextEvent) => event.detail?.noise !== true && matches(event, options);
  if (hasElse === undefined) return (event) => has(event) && isMeant(event);
  for await (const event of eventsOf(api, scope, options)) if (has(event)) return (one) => has(one) && isMeant(one);
  return (event) => hasElse(event) && isMeant(event);
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
      if (message.type === "event") yield message.event as unknown as TextEvent;
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
