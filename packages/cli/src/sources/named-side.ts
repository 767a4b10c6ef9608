import type { ApiClient } from "../api/api.ts";
import { CommandError } from "../command-error.ts";
import { isFuture, notYet, positionOrTime, timeForm } from "../commands/time.ts";
import { namedLoop } from "./named-loop.ts";
import { oneSource } from "./named-source.ts";

const aSession = /^[0-9A-HJKMNP-TV-Z]{26}$/i;

/** What a command is about, as the API takes it. Undefined: the only source there is. */
export type NamedSide = { readonly type: "loop" | "session" | "source"; readonly name: string | undefined };

/**
 * A side of a comparison: a loop, a session or a source, the latter two also with "@" and a time in words:
 * `alice/shop@yesterday`. Without a text, the source of `--source` or of this folder.
 * @throws CommandError if the text after "@" is no time, and those of `namedLoop` and `oneSource`
 */
export async function namedSide(api: ApiClient, text: string | undefined, source?: string): Promise<NamedSide> {
  const [, name = "", at] = /^([^@]*)(?:@(.*))?$/s.exec(text ?? "") ?? [];
  const when = at === undefined ? "" : `@${timeAfterAt(at)}`;
  if (aSession.test(name)) return { type: "session", name: `${name}${when}` };
  const loop = at === undefined && name !== "" ? await namedLoop(api, name, source) : undefined;
  if (loop !== undefined) return { type: "loop", name: loop };
  const one = await oneSource(api, name || source);
  return { type: "source", name: one === undefined ? undefined : `${one}${when}` };
}

function timeAfterAt(text: string): string {
  const when = positionOrTime(text);
  if (isFuture(when)) throw new CommandError(`"${text}": ${notYet}`);
  if (when === undefined) throw new CommandError(`"${text}" is neither a position nor a time. Expected ${timeForm}.`);
  return when;
}
