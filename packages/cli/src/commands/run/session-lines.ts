import type { Operation, TapedeckEvent } from "@tapedeck/client";
import type { Loop, Step } from "@tapedeck/client/lanes/step";
import { isKind } from "@tapedeck/shared/events/kinds";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { Page } from "../../api/api.ts";
import { plainLine } from "../../display/plain-line.ts";
import { gatewayUrlText } from "../../gateway-url.ts";
import { chosenTapedeck } from "../../targets/chosen-tapedeck.ts";
import type { CommandExit } from "./command-process.ts";
import type { Env } from "./recordable.ts";

export type SessionLines = {
  readonly welcomed: (source: string) => void;
  readonly found: (session: string) => void;
  /** The last words, when all of it is recorded: what failed. */
  readonly end: (abort: AbortSignal, exit: CommandExit) => Promise<readonly Cause[]>;
};

/** Nobody waits longer for their prompt than this, for a link; for the cause of a failure three times as long. */
const linkTimeoutMs = 500;

/**
 * Prints as what a command is recorded, when that is known and at the end: one line for each session, with its place on
 * the page. At the end also what failed in what the command did last, and where.
 */
export function sessionLines(
  url: string | undefined,
  env: Env,
  printLine: (line: string) => void,
  timeoutMs = linkTimeoutMs,
): SessionLines {
  const sessions: string[] = [];
  let name = "";
  const page = (path: string) => `${gatewayUrlText(chosenTapedeck(url, env).gateway)}${path}`;
  const lineOf = (session: string) => `${name}, session ${session}: ${page(`/sessions/${session}`)}`;
  return {
    welcomed: (source) => {
      const [, developer = "", project = ""] = source.split("/");
      name = `${developer}/${project}`;
    },
    found: (session) => {
      if (sessions.includes(session)) return;
      sessions.push(session);
      printLine(`recording as ${lineOf(session)}`);
    },
    end: async (abort, exit) => {
      for (const session of sessions) printLine(`recorded as ${lineOf(session)}`);
      const soon = AbortSignal.any([abort, timeoutSignal(isFailed(exit) ? 3 * timeoutMs : timeoutMs)]);
      const causes = await Promise.all(sessions.map((session) => causeOfEnd(session, url, env, soon)));
      const known = causes.filter((cause) => typeof cause === "object");
      for (const { what, why, path } of known)
        printLine([what, why, page(path)].filter((part) => part !== "").join(": "));
      if (isFailed(exit) && causes.length > 0 && known.length === 0) {
        const isRead = causes.every((cause) => cause === "none");
        printLine(`the command ${exitText(exit)}${isRead ? "; no step of it is recorded as failed" : ""}`);
      }
      return known;
    },
  };
}

function isFailed({ code, signal }: CommandExit): boolean {
  return code !== 0 && signal !== "SIGINT";
}

function exitText({ code, signal }: CommandExit): string {
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
}

/** `what`: "sync web failed in loop 2 (4 tries)". `why`: the line that says it; empty: none does. */
export type Cause = { readonly what: string; readonly why: string; readonly path: string };

const nouns = ["loop", "init", "build", "test", "render", "deploy", "verify", "exec", "check", "sync", "command"];
const verbs = ["started", "succeeded", "failed", "canceled", "cached", "finished"];
/** The events of the last loops are enough. */
const maxEvents = 1_000;

/**
 * What failed first in the session's last loop, round of steps or command; "none" if that did not fail. Read from the log,
 * which has it when it is recorded. "unknown" where it can't be read in time, or not at all: a recorder's token reads nothing.
 */
async function causeOfEnd(
  session: string,
  url: string | undefined,
  env: Env,
  signal: AbortSignal,
): Promise<Cause | "none" | "unknown"> {
  try {
    const [{ httpBase }, { foldLoops }] = await Promise.all([
      import("../../gateway-address.ts"),
      import("@tapedeck/client/lanes/now"),
    ]);
    const { base, headers } = httpBase(url, env);
    const filter = new URLSearchParams({ session, last: String(maxEvents) });
    for (const noun of nouns)
      for (const verb of verbs) if (isKind(`${noun}.${verb}`)) filter.append("kind", `${noun}.${verb}`);
    const answer = await fetch(`${base}/api/v1/events?${filter}`, { headers, signal });
    if (!answer.ok) return "unknown";
    const { items, position } = (await answer.json()) as Pick<Page<TapedeckEvent>, "items" | "position">;
    const last = items.reduce<readonly Loop[]>((loops, event) => foldLoops(loops, event), []).at(-1);
    const cause = last && (await causeIn(session, last));
    if (cause === undefined) return "none";
    const { failed, ...shown } = cause;
    return { ...shown, why: await whyAt({ base, headers, position }, session, failed, signal) };
  } catch {
    return "unknown";
  }
}

type Api = {
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The answer has to reflect what is recorded up to here: output may be recorded after the failure. */
  readonly position: string;
};

/** Why it failed, as all lists say it; empty where that is not known in time. */
async function whyAt(
  { base, headers, position }: Api,
  session: string,
  { kind: ofKind, endPosition: at }: Step,
  signal: AbortSignal,
): Promise<string> {
  try {
    const filter = new URLSearchParams({ session, outcome: "failed", limit: "100" });
    const up = { ...headers, "tapedeck-min-position": position };
    const answer = await fetch(`${base}/api/v1/operations?${filter}`, { headers: up, signal });
    const { items = [] } = (await answer.json()) as { readonly items?: readonly Operation[] };
    const found = items.find(({ kind, endPosition }) => kind === ofKind && endPosition === at);
    return plainLine(found?.cause?.text ?? "");
  } catch {
    return "";
  }
}

type Failed = Omit<Cause, "why"> & { readonly failed: Step };

async function causeIn(session: string, last: Loop): Promise<Failed | undefined> {
  const [{ failedTries, firstFailure }, { stepText }] = await Promise.all([
    import("@tapedeck/client/lanes/loop"),
    import("@tapedeck/client/lanes/step"),
  ]);
  const isOver = last.outcome === "succeeded" || last.outcome === "canceled";
  const step = isOver ? undefined : firstFailure(last.steps);
  if (step === undefined && last.outcome !== "failed") return undefined;
  const { kind, runner, loop } = last;
  const isLoop = kind === "loop";
  const tries = step === undefined ? 1 : failedTries(last.steps, step);
  const what = `${step === undefined ? (isLoop ? `loop ${loop}` : stepText({ ...last, instance: "" })) : stepText(step)} failed`;
  const where = isLoop && step !== undefined ? ` in loop ${loop}` : "";
  const path = isLoop
    ? `/loops/${session}.${runner}.${loop}`
    : `/sessions/${session}?at=${(step ?? last).endPosition ?? last.position}`;
  return { what: `${what}${where}${tries > 1 ? ` (${tries} tries)` : ""}`, path, failed: step ?? last };
}
