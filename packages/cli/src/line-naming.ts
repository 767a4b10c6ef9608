import { shellWord } from "@tapedeck/shared/output/shell-word";
import { shortSource } from "./display/source-name.ts";
import { programName } from "./program-name.ts";

/** The command line that was typed, with a source in place of a name that means several, or else at its end. */
export function lineNaming(source: string, text?: string): string {
  const words = process.argv.slice(2);
  const at = text === undefined ? -1 : words.indexOf(text);
  const named = at < 0 ? [...words, "-s", shortSource(source)] : words.with(at, shortSource(source));
  return [programName().here, ...named.map(shellWord)].join(" ");
}
