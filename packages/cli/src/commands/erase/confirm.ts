import { createInterface } from "node:readline/promises";
import { CommandError } from "../../command-error.ts";
import { cleaned, rawOutput } from "../../display/output.ts";

/** @throws CommandError unless the user confirms on a terminal */
export async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new CommandError("stdin is not a terminal, so the erasure can't be confirmed: add --yes.");
  const prompt = createInterface({ input: process.stdin, output: rawOutput });
  const answer = await prompt.question(cleaned(question));
  prompt.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError("nothing was erased.");
}
