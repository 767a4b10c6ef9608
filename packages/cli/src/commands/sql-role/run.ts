import {
  createLogin,
  dropLogin,
  isRecorded,
  LeakyPlansError,
  logins,
  RolesRefusedError,
  type WorkspaceLogin,
} from "@tapedeck/query/for-cli/maintain";
import { namePart } from "@tapedeck/shared/source";
import { CommandError } from "../../command-error.ts";
import { print, printError, printJson } from "../../display/output.ts";
import { table } from "../../display/table.ts";
import { auditDone, auditHere } from "../../maintain/audit-here.ts";
import { dialNats } from "../../maintain/here.ts";
import { announceLocalOnly } from "../../maintain/which-tapedeck.ts";
import { type DatabaseHere, openDatabaseHere } from "./database-here.ts";

/** `data`: the folder of this machine's `up`, whose Postgres is used unless the settings name another. */
export type SqlRoleOptions = { readonly data: string; readonly json?: boolean };

export type CreateSqlRoleOptions = SqlRoleOptions & {
  readonly workspace: string;
  readonly developer?: string;
  readonly mayGuessNames?: boolean;
  readonly quiet?: boolean;
};

export async function createSqlRole(options: CreateSqlRoleOptions): Promise<void> {
  const { workspace, developer, mayGuessNames = false, json, quiet, data } = options;
  await using here = await open(data);
  const { leftOut, ...made } = await refusedAsCommand(() =>
    createLogin(here.database, {
      workspace: namePart(workspace),
      developer: developer && namePart(developer),
      limits: here.limits,
      mayGuessNames,
    }),
  );
  await auditDone(recordLogin(here, "sql-role.created", made));
  const url = here.urlOf(made.login, made.password);
  if (json) printJson({ ...made, url, leftOut });
  else print(url);
  if (quiet || json) return;
  printError(`${made.login} reads workspace ${made.workspace}, for psql or any other client of Postgres`);
  printError("The password is shown only once.");
  if (!(await isRecorded(here.database, made.workspace)))
    printError(`Nothing has been recorded in workspace ${made.workspace} yet.`);
  if (leftOut.length > 0) printError(`This database user is not allowed to set these for it: ${leftOut.join(", ")}.`);
}

export async function listSqlRoles({ json, data }: SqlRoleOptions): Promise<void> {
  await using here = await open(data);
  const items = await logins(here.database);
  if (json) {
    printJson({ items });
    return;
  }
  if (items.length === 0) {
    print("There are no workspace logins.");
    return;
  }
  const columns = ["LOGIN", "WORKSPACE", "DEVELOPER", "CREATED"].map((title) => ({ title }));
  print(
    table(
      columns,
      items.map(({ login, workspace, developer, createdAt }) => [
        login,
        workspace,
        developer ?? "-",
        createdAt.slice(0, 10),
      ]),
    ),
  );
}

export async function dropSqlRole(login: string, { json, data }: SqlRoleOptions): Promise<void> {
  await using here = await open(data);
  const dropped: WorkspaceLogin | undefined = await dropLogin(here.database, login);
  if (dropped === undefined) {
    throw new CommandError(`there is no workspace login ${login}: see \`tapedeck sql-role list\`.`);
  }
  await auditDone(recordLogin(here, "sql-role.dropped", dropped));
  if (json) printJson(dropped);
  else print(`dropped ${dropped.login} (workspace ${dropped.workspace})`);
}

function open(data: string): Promise<DatabaseHere> {
  announceLocalOnly("sql-role", data);
  return openDatabaseHere(data, process.env);
}

/** To the audit log, which is in NATS: a login is in Postgres alone. */
async function recordLogin(
  here: DatabaseHere,
  action: "sql-role.created" | "sql-role.dropped",
  { login, workspace }: Pick<WorkspaceLogin, "login" | "workspace">,
): Promise<void> {
  const nats = await here.nats();
  if (nats === undefined) throw new CommandError("the settings name no NATS (nats.url).");
  await using stack = new AsyncDisposableStack();
  const connection = stack.adopt(await dialNats(nats), (nc) => nc.close());
  await auditHere(connection, { action, workspace, about: { login } });
}

async function refusedAsCommand<T>(make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (cause) {
    if (cause instanceof LeakyPlansError) {
      const ways = "have one run the statement of docs/team.md#sql once, or pass --may-guess-names";
      throw new CommandError(`${cause.message}: ${ways}.`, { cause });
    }
    if (cause instanceof RolesRefusedError) throw new CommandError(`${cause.message}.`, { cause });
    throw cause;
  }
}
