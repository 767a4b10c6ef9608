import { createReadStream } from "node:fs";
import { text } from "node:stream/consumers";
import { isNamePart, nameForm, namePart } from "@tapedeck/shared/source";
import { tokenNameError } from "@tapedeck/shared/tokens/token-name";
import { CommandError } from "../../command-error.ts";

/** Somebody who shall have a token, and what it is called. */
export type ListedDeveloper = { readonly developer: string; readonly name: string };

/** `file`: "-" for stdin. @throws CommandError */
export async function readDevelopers(file: string): Promise<readonly ListedDeveloper[]> {
  const from = file === "-" ? process.stdin : createReadStream(file);
  const read = await text(from).catch((cause: NodeJS.ErrnoException) => {
    throw new CommandError(`${file} can't be read (${cause.code ?? cause.message}).`, { cause });
  });
  return developersIn(read);
}

/**
 * One developer a line: a name as sources have it, and behind it what the token is called, if not that. Empty lines and
 * those that begin with "#" are left out.
 * @throws CommandError that names every line that is wrong, so that nothing is created of a list with a mistake
 */
export function developersIn(list: string): readonly ListedDeveloper[] {
  const lines = list.split(/\r?\n/).map((line, index) => ({ line: line.trim(), number: index + 1 }));
  const seen = new Set<string>();
  const errors: string[] = [];
  const found = lines
    .filter(({ line }) => line !== "" && !line.startsWith("#"))
    .map(({ line, number }) => {
      const [developer = "", ...words] = line.split(/\s+/);
      if (!isNamePart(developer)) {
        errors.push(`line ${number}: "${developer}" is not ${nameForm}; write ${namePart(developer)}`);
      } else if (seen.has(developer)) errors.push(`line ${number}: "${developer}" is listed twice`);
      seen.add(developer);
      const name = words.length === 0 ? developer : words.join(" ");
      const reason = tokenNameError(name);
      if (reason !== undefined) errors.push(`line ${number}: the name ${JSON.stringify(name)} ${reason}`);
      return { developer, name };
    });
  if (errors.length > 0) throw new CommandError(`no token was created: ${errors.join("; ")}.`);
  if (found.length === 0) throw new CommandError("no token was created: the list is empty.");
  return found;
}
