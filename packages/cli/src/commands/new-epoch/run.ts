import { renewEpoch } from "@tapedeck/shared/log/backup";
import { endOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { workspaceSetting } from "@tapedeck/shared/service/common-settings";
import { namePart } from "@tapedeck/shared/source";
import { CommandError } from "../../command-error.ts";
import { print } from "../../display/output.ts";
import { auditDone, auditHere } from "../../maintain/audit-here.ts";
import { checkForgettable, forgetTables } from "../../maintain/forget-tables.ts";
import { findHere } from "../../maintain/here.ts";
import { openStoppedMachine } from "../../maintain/stopped-machine.ts";
import { announceLocalOnly } from "../../maintain/which-tapedeck.ts";

export type NewEpochOptions = { readonly data: string; readonly workspace?: string; readonly yes?: boolean };

/** Goes on with what is left of a log that has lost its end, at positions that were never given. */
export async function startNewEpoch({ data, workspace: name, yes = false }: NewEpochOptions): Promise<void> {
  announceLocalOnly("new-epoch", data);
  if (!yes) throw new CommandError("positions beyond the log's end become permanently invalid: confirm with --yes.");
  const workspace = name === undefined ? workspaceSetting((await findHere(data)).settings()) : namePart(name);
  await using machine = await openStoppedMachine(data);
  await checkForgettable(machine.databaseUrl);
  const { epoch, lastSeq, formerEpochs } = await renewEpoch(machine.nats, workspace);
  const forgotten = await forgetTables(machine.nats, machine.databaseUrl);
  const last = formatPosition({ epoch: formerEpochs.at(-1)?.epoch ?? "", offset: endOf(lastSeq) });
  print(
    `the log of the workspace "${workspace}" continues as epoch ${epoch}; positions up to ${last} remain valid, later ones are refused`,
  );
  print("after the next start, session.gap events report what is known to be lost");
  if (forgotten) print("the tables are ahead of the log: they are rebuilt at the next start");
  await auditDone(auditHere(machine.nats, { action: "log.epoch-renewed", workspace, about: { epoch } }));
}
