import { createInterface } from "node:readline/promises";
import { eraseSession, findSession } from "@tapedeck/ingest/for-cli/maintain";
import { CommandError } from "../../command-error.ts";
import { shortSource } from "../../display/source-name.ts";
import { remoteMaintenance } from "../../maintain/remote.ts";
import { openThisMachine } from "../../maintain/this-machine.ts";
import { announceTapedeck } from "../../maintain/which-tapedeck.ts";

export type EraseOptions = {
  readonly session: string;
  readonly data: string;
  readonly url?: string;
  readonly here?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
};

/** Erases a session on this machine's Tapedeck server, or through another one's gateway. */
export async function erase(options: EraseOptions): Promise<void> {
  const { session, data, yes, json } = options;
  if (announceTapedeck("erase", options)) return eraseElsewhere(options);
  await using machine = await openThisMachine(data);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const deps = { nats: machine.nats, log: machine.log, signal: stop.signal };
  const found = await findSession(session, deps);
  if (found === undefined) throw new CommandError(`there is no session ${session}: see \`tapedeck sessions\`.`);
  const source = shortSource(found.source);
  const events = found.messages.reduce((sum, message) => sum + message.events, 0);
  if (found.goesOn) {
    throw new CommandError(
      `session ${session} of ${source} is still running: end it first, or it would be recorded again.`,
    );
  }
  if (found.marked && events === 0) throw new CommandError(`session ${session} of ${source} has already been erased.`);
  if (!yes) await confirm(`Erase session ${session} of ${source} (${events} events)? This can't be undone. [y/N] `);
  let removed = 0;
  await eraseSession(found, deps, (count) => {
    removed = count;
  });
  if (stop.signal.aborted)
    throw new CommandError(`stopped after ${removed} of ${events} events: run it again to continue.`);
  if (json) process.stdout.write(`${JSON.stringify({ source: found.source, session, events })}\n`);
  else console.log(`erased session ${session} of ${source}: ${events} events`);
}

async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new CommandError("stdin is not a terminal, so the erasure can't be confirmed: add --yes.");
  const prompt = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await prompt.question(question);
  prompt.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError("nothing was erased.");
}

async function eraseElsewhere({ url, session, yes, json }: EraseOptions): Promise<void> {
  if (!yes) await confirm(`Erase session ${session}? This can't be undone. [y/N] `);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  let last = { source: "", events: 0, removed: 0 };
  for await (const erasing of remoteMaintenance(url).erase(session, stop.signal)) last = erasing;
  const { source, events, removed } = last;
  if (stop.signal.aborted)
    throw new CommandError(`stopped after ${removed} of ${events} events: run it again to continue.`);
  if (json) process.stdout.write(`${JSON.stringify({ source, session, events })}\n`);
  else console.log(`erased session ${session} of ${shortSource(source)}: ${events} events`);
}
