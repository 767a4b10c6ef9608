import { connect, TapedeckError } from "@tapedeck/client";
import { textKinds } from "@tapedeck/shared/events/kinds";
import { positionBefore } from "@tapedeck/shared/log/position";
import { type ApiClient, apiAt, type Page } from "../../api/api.ts";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { printGap } from "../../display/gap.ts";
import { jsonText, print, printError } from "../../display/output.ts";
import { TextLines } from "./text-lines.ts";

export type LogsOptions = {
  readonly url?: string;
  readonly json?: boolean;
  readonly source?: string;
  readonly session?: string;
  readonly artifact?: readonly string[];
  readonly pod?: readonly string[];
  readonly app?: readonly string[];
  readonly job?: readonly string[];
  readonly since?: string;
  readonly until?: string;
  readonly last?: number;
  readonly follow?: boolean;
};

type TextEvent = {
  readonly position: string;
  readonly source: string;
  readonly session: string;
  readonly subject?: string;
  readonly detail?: TextDetail;
};
type TextDetail = {
  readonly text?: string;
  readonly noise?: boolean;
  readonly pod?: string;
  readonly container?: string;
  readonly subtask?: string;
};
type Session = { readonly session: string; readonly source: string; readonly startPosition: string };

/** Prints the text of a session, or of a time, and follows it. */
export async function logs(options: LogsOptions): Promise<void> {
  const api = apiAt(options.url);
  const session = await sessionOf(api, options);
  const { since, until, follow = false } = options;
  // `-f` follows the source into its next session.
  const filter = since === undefined && !follow ? { sessions: [session.session] } : { sources: [session.source] };
  const after = since ?? positionBefore(session.startPosition) ?? "start";
  const last = new LastLines(options.last);
  const text = new TextLines();
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  using client = connect({ url: api.base, ...(api.token !== undefined && { token: api.token }) });
  const reading = { ...filter, kinds: textKinds, after, signal: stop.signal, onGap: printGap };
  try {
    for await (const message of client.subscribe(follow ? reading : { ...reading, until: until ?? "now" })) {
      if (message.type === "caught_up" || message.type === "complete") last.release();
      if (message.type !== "event") continue;
      const event = message.event as unknown as TextEvent;
      if (!isMeant(event, options) || event.detail?.noise === true) continue;
      if (options.json) last.take(jsonText(event));
      else for (const line of text.take(originOf(event), event.detail?.text ?? "")) last.take(lineOf(line));
    }
    for (const line of text.rest()) last.take(lineOf(line));
    last.release();
    if (last.taken === 0 && !stop.signal.aborted) printError("no output matches");
  } catch (error) {
    throw error instanceof TapedeckError ? new CommandError(error.message) : error;
  }
}

async function sessionOf(api: ApiClient, { source, session }: LogsOptions): Promise<Session> {
  const parameters = { source, session, limit: 1 };
  const chosen = session ?? (await api.get<{ readonly session: string }>("/api/v1/state", { source })).session;
  const { items } = await api.get<Page<Session>>("/api/v1/sessions", { ...parameters, session: chosen });
  const [found] = items;
  if (found === undefined) throw new CommandError("there is no such session: see `tapedeck sessions`.");
  return found;
}

/** Whether the text matches the options; every given option has to match. */
function isMeant({ subject = "", detail = {} }: TextEvent, { artifact, pod, app, job }: LogsOptions): boolean {
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

function lineOf({ origin, text }: { readonly origin: string; readonly text: string }): string {
  return origin === "" ? text : `${coloured("cyan", `${origin} |`)} ${text}`;
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
