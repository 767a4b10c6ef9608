import { eraseSession, findSession } from "@tapedeck/ingest/for-cli/maintain";
import { CommandError } from "../../command-error.ts";
import { print, printJson } from "../../display/output.ts";
import { shortSource } from "../../display/source-name.ts";
import { auditDone, auditHere } from "../../maintain/audit-here.ts";
import { openThisMachine } from "../../maintain/this-machine.ts";
import { confirm } from "./confirm.ts";
import type { EraseOptions } from "./options.ts";

/** Erases a session on the Tapedeck that runs on a data folder. */
export async function eraseHere({ session, data, yes, json }: EraseOptions): Promise<void> {
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
  const about = { source: found.source, session, events: removed };
  const [workspace = "-"] = found.source.split("/");
  if (removed > 0) await auditDone(auditHere(machine.nats, { action: "session.erased", workspace, about }));
  if (stop.signal.aborted)
    throw new CommandError(`stopped after ${removed} of ${events} events: run it again to continue.`);
  if (json) printJson({ source: found.source, session, events });
  else print(`erased session ${session} of ${source}: ${events} events`);
}
