import { createInterface } from "node:readline/promises";
import { CommandError } from "./command-error.ts";
import { cleaned, rawOutput } from "./display/output.ts";

/**
 * `done`: "erased", for what is said where nothing happens.
 * @throws CommandError unless the user confirms on a terminal
 */
export async function confirm(question: string, done: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new CommandError(`nothing was ${done}: stdin is not a terminal, so nobody can confirm it; add --yes.`);
  const prompt = createInterface({ input: process.stdin, output: rawOutput });
  const answer = await prompt.question(cleaned(question));
  prompt.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError(`nothing was ${done}.`);
}
