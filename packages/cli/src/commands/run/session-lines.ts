import { chosenTapedeck } from "../../context/chosen-tapedeck.ts";
import { gatewayUrlText } from "../../gateway-url.ts";
import type { Env } from "./recordable.ts";

export type SessionLines = {
  readonly welcomed: (source: string) => void;
  readonly found: (session: string) => void;
  /** The last words, when all of it is recorded. */
  readonly end: (hurry: AbortSignal) => Promise<void>;
};

/**
 * Tells people as what their command is recorded, when that is known and at the end: one line for each session, with its
 * place on the page. At the end also where the last failed loop is.
 */
export function sessionLines(url: string | undefined, env: Env, say: (line: string) => void): SessionLines {
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
      say(`recording as ${lineOf(session)}`);
    },
    end: async (hurry) => {
      for (const session of sessions) say(`recorded as ${lineOf(session)}`);
      const soon = AbortSignal.any([hurry, AbortSignal.timeout(patienceMs)]);
      const failed = await Promise.all(sessions.map((session) => lastFailedLoop(session, url, env, soon)));
      for (const [index, found] of failed.entries()) {
        if (found === undefined) continue;
        say(`loop ${found.loop} failed: ${page(`/loops/${sessions[index]}.${found.runner}.${found.loop}`)}`);
      }
    },
  };
}

/** Nobody waits longer for their prompt than this, for a link. */
const patienceMs = 500;

type FailedLoop = { readonly runner: number; readonly loop: number };

/** From the log, which has it when it is recorded. Undefined also where it can't be read: a recorder's token reads nothing. */
async function lastFailedLoop(
  session: string,
  url: string | undefined,
  env: Env,
  signal: AbortSignal,
): Promise<FailedLoop | undefined> {
  try {
    const { httpBase } = await import("../../gateway-address.ts");
    const { base, headers } = httpBase(url, env);
    const query = new URLSearchParams({ session, kind: "loop.failed", last: "1" });
    const answer = await fetch(`${base}/api/v1/events?${query}`, { headers, signal });
    const body = (await answer.json()) as { readonly items?: readonly { readonly operation?: FailedLoop }[] };
    return answer.ok ? body.items?.[0]?.operation : undefined;
  } catch {
    return undefined;
  }
}
