import { createReadStream } from "node:fs";
import { text } from "node:stream/consumers";
import { type Explanation, explain } from "@tapedeck/explain";
import { CommandError } from "../../command-error.ts";
import { coloured } from "../../display/colour.ts";
import { print, printJson } from "../../display/output.ts";
import { plainLine } from "../../display/plain-line.ts";

export type ExplainOptions = { readonly json?: boolean };

export async function explainFile(file: string | undefined, { json }: ExplainOptions): Promise<void> {
  const explanation = explain({ output: await outputFrom(file) });
  if (explanation === undefined) return;
  if (json) printJson(explanation);
  else print(explanationText(explanation));
}

/** "-" is stdin too. @throws CommandError */
function outputFrom(file = "-"): Promise<string> {
  const from = file === "-" ? process.stdin : createReadStream(file);
  return text(from).catch((cause: NodeJS.ErrnoException) => {
    throw new CommandError(`${file} can't be read (${cause.code ?? cause.message}).`, { cause });
  });
}

function explanationText({ cause, reason, file, line, advice }: Explanation): string {
  const place = file === null ? "" : `  ${plainLine(line === null ? file : `${file}:${line}`)}`;
  return [
    `${coloured("red", reason)}${place}`,
    `  ${plainLine(cause)}`,
    ...(advice === null ? [] : [`  Advice: ${plainLine(advice)}`]),
  ].join("\n");
}
