import { plural } from "@tapedeck/client/lanes/format";
import type { Role, TokenRecord } from "@tapedeck/shared/tokens/token";
import { CommandError } from "../../command-error.ts";
import { jsonText, print, printError, printJson } from "../../display/output.ts";
import { table } from "../../display/table.ts";
import { isElsewhere } from "../../targets/chosen-tapedeck.ts";
import { readDevelopers } from "./developer-list.ts";
import { type NewToken, remoteTokens, type Tokens } from "./tokens.ts";
import { openTokensHere } from "./tokens-here.ts";

/** Location of the tokens: behind a gateway, or in this machine's NATS. `here`: the latter, whatever else is selected. */
export type TokensAt = { readonly url?: string; readonly data: string; readonly here?: boolean };

export type CreateTokenOptions = TokensAt & {
  /** One of both. */
  readonly name?: string;
  readonly from?: string;
  readonly role: readonly Role[];
  readonly workspace?: string;
  readonly developer?: string;
  readonly allWorkspaces?: boolean;
  readonly machine?: boolean;
  readonly renewable?: boolean;
  readonly expires: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
};

export type ListTokensOptions = TokensAt & { readonly workspace?: string; readonly json?: boolean };

export type RevokeTokenOptions = TokensAt & { readonly json?: boolean };

export async function createToken(options: CreateTokenOptions): Promise<void> {
  const { name, from, developer, allWorkspaces = false } = options;
  if ((name === undefined) === (from === undefined)) {
    throw new CommandError("use --name for one token, or --from with a list for one token per developer.");
  }
  if (from !== undefined && (developer !== undefined || allWorkspaces)) {
    throw new CommandError("the list of --from names the developers: omit --developer and --all-workspaces.");
  }
  if (allWorkspaces && areElsewhere(options)) {
    throw new CommandError(
      "a token for all workspaces can only be created on the server itself: omit --url and TAPEDECK_URL there, or run `tapedeck context use local`.",
    );
  }
  const developers = from === undefined ? undefined : await readDevelopers(from);
  await using tokens = await open(options);
  if (developers === undefined) return await createOne(tokens, { name: name ?? "", options });
  for (const one of developers) {
    const made = await tokens.create({ ...wishesOf(options), ...one });
    // At once: if a later one fails, those that were created are known.
    print(options.json ? jsonText(made) : `${one.developer}\t${made.token}`);
  }
  if (options.json || options.quiet) return;
  printError(
    `${plural(developers.length, "token")}, shown only once. Keep ${developers.length === 1 ? "it" : "them"} secret.`,
  );
  if (tokens.remark !== undefined) printError(tokens.remark);
}

type One = { readonly name: string; readonly options: CreateTokenOptions };

async function createOne(tokens: Tokens, { name, options }: One): Promise<void> {
  const { developer, allWorkspaces = false, json, quiet } = options;
  const made = await tokens.create({
    ...wishesOf(options),
    name,
    ...(developer !== undefined && { developer }),
    ...(allWorkspaces && { everywhere: true as const }),
  });
  if (json) {
    printJson(made);
    return;
  }
  print(made.token);
  if (quiet) return;
  const whose = made.developer === undefined ? "" : `, for ${made.developer}`;
  const beyond = allWorkspaces ? " (with backup and rebuild of all workspaces)" : "";
  printError(
    `${made.roles.join(", ")} in workspace ${made.workspace}${beyond}${whose}, until ${dayOf(made.expiresAt)}; id ${made.id}`,
  );
  printError("It is shown only once. Keep it secret: export TAPEDECK_TOKEN=…");
  if (tokens.remark !== undefined) printError(tokens.remark);
}

function wishesOf({ role, expires, workspace, machine, renewable }: CreateTokenOptions): Omit<NewToken, "name"> {
  return {
    roles: role,
    expires,
    ...(workspace !== undefined && { workspace }),
    ...(machine && { machine }),
    ...(renewable && { renewable }),
  };
}

export async function listTokens({ json, ...options }: ListTokensOptions): Promise<void> {
  await using tokens = await open(options);
  const { workspace } = options;
  const all = await tokens.list();
  const items = workspace === undefined ? all : all.filter((token) => token.workspace === workspace);
  if (json) {
    printJson({ items });
    return;
  }
  if (items.length === 0) {
    print("There are no tokens.");
    return;
  }
  const columns = ["ID", "NAME", "ROLES", "WORKSPACE", "DEVELOPER", "CREATED", "EXPIRES"].map((title) => ({ title }));
  print(table(columns, items.map(cellsOf)));
}

export async function revokeToken(id: string, { json, ...options }: RevokeTokenOptions): Promise<void> {
  await using tokens = await open(options);
  const revoked = await tokens.revoke(id);
  if (json) printJson(revoked);
  else print(`revoked ${revoked.name} (${revoked.roles.join(", ")} in workspace ${revoked.workspace})`);
}

function areElsewhere({ url, here = false }: TokensAt): boolean {
  return !here && isElsewhere(url, process.env);
}

async function open({ workspace, ...at }: TokensAt & { readonly workspace?: string }): Promise<Tokens> {
  const { url, data } = at;
  if (!areElsewhere(at)) return openTokensHere(data, process.env);
  if (workspace === undefined) return remoteTokens(url);
  throw new CommandError("--workspace works on this machine only: another server uses the workspace of your token.");
}

function cellsOf({
  id,
  name,
  roles,
  workspace,
  everywhere,
  machine,
  developer = "-",
  createdAt,
  expiresAt,
}: TokenRecord): string[] {
  const isOver = Date.parse(expiresAt) <= Date.now();
  const expires = isOver ? `expired ${dayOf(expiresAt)}` : dayOf(expiresAt);
  return [
    id,
    machine ? `${name} (machine)` : name,
    roles.join(", "),
    everywhere ? `${workspace}, all` : workspace,
    developer,
    dayOf(createdAt),
    expires,
  ];
}

/** The date in the local time zone. */
function dayOf(time: string): string {
  return new Date(time).toLocaleDateString("sv-SE");
}
