import { chosenTapedeck } from "../../context/chosen-tapedeck.ts";
import { gatewayUrlText } from "../../gateway-url.ts";
import type { Env } from "./recordable.ts";

export type SessionLines = {
  readonly welcomed: (source: string) => void;
  readonly found: (session: string) => void;
  /** The last words, when all of it is recorded. */
  readonly end: () => void;
};

/** Tells people as what their command is recorded, when that is known and at the end: one line for each session. */
export function sessionLines(url: string | undefined, env: Env, say: (line: string) => void): SessionLines {
  const sessions: string[] = [];
  let name = "";
  const lineOf = (session: string) => `${name}, session ${session}: ${sessionLink(url, session, env)}`;
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
    end: () => {
      for (const session of sessions) say(`recorded as ${lineOf(session)}`);
    },
  };
}

function sessionLink(url: string | undefined, session: string, env: Env): string {
  return `${gatewayUrlText(chosenTapedeck(url, env).gateway)}/api/v1/sessions?session=${session}`;
}
