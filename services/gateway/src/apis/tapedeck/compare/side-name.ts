import { invalidArgument } from "@tapedeck/shared/errors/errors";
import { parseWhen } from "@tapedeck/shared/filter/time";

/** A caller's name of a side of a comparison. `at`: a position or a time; without it, now. */
export type SideName =
  | { readonly type: "loop"; readonly session: string; readonly runner: number; readonly loop: number }
  | { readonly type: "session"; readonly session: string; readonly at: string | undefined }
  /** Without a name: the only source there is. */
  | { readonly type: "source"; readonly source: string | undefined; readonly at: string | undefined };

/** Runners and loops are uint32. */
const maxNumber = 2 ** 32 - 1;

/** `<session>.<runner>.<loop>`, a session's id, or a source as elsewhere; the latter two with `@<position or time>`. */
export function sideNamed(text: string, field: "left" | "right"): SideName {
  const loop = /^(?<session>\w+)\.(?<runner>\d{1,10})\.(?<loop>\d{1,10})$/.exec(text)?.groups;
  if (loop !== undefined) {
    const { session = "", runner, loop: number } = loop;
    if (Math.max(Number(runner), Number(number)) > maxNumber) {
      throw invalidArgument(`${field} "${text}" is not a loop: its runner and number are at most ${maxNumber}`, field);
    }
    return { type: "loop", session, runner: Number(runner), loop: Number(number) };
  }
  const { name = "", at } = /^(?<name>[^@]*)(?:@(?<at>.*))?$/s.exec(text)?.groups ?? {};
  if (name === "") {
    const forms =
      "a loop (<session>.<runner>.<loop>), a session's id, or a source such as alice/shop, both also with @<position or time>";
    throw invalidArgument(`${field} "${text}" is not ${forms}`, field);
  }
  const position = at === undefined ? undefined : positionOf(at, field);
  if (name.includes("/")) return { type: "source", source: name, at: position };
  return { type: "session", session: name, at: position };
}

function positionOf(at: string, field: string): string {
  const type = parseWhen(at)?.type;
  // The "+" of a time's zone arrives as a space.
  if (type === "position" || type === "time") return at.replace(" ", "+");
  const refusal = "is neither a position (such as 383600-t3k9x2) nor a time (2026-01-31T12:00:00Z)";
  throw invalidArgument(`${field}: "${at}" ${refusal}`, field);
}
