import { CommandError } from "../command-error.ts";
import { positionOrTime, timeForm } from "./time.ts";

/**
 * A side of a comparison as the API takes it. A time after "@" may be in words: `alice/shop@yesterday`.
 * @throws CommandError if the text after "@" is no time
 */
export function sideOf(text: string): string {
  const at = text.indexOf("@");
  if (at < 0) return text;
  const when = positionOrTime(text.slice(at + 1));
  if (when === undefined)
    throw new CommandError(`"${text.slice(at + 1)}" is neither a position nor a time. Expected ${timeForm}.`);
  return `${text.slice(0, at)}@${when}`;
}
