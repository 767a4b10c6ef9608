import type { Role, TokenRecord } from "@tapedeck/shared/tokens/token";
import { CommandError } from "../../command-error.ts";
import { isElsewhere } from "../../context/chosen-tapedeck.ts";
import { table } from "../../display/table.ts";
import { remoteTokens } from "./remote-tokens.ts";
import type { Tokens } from "./tokens.ts";
import { openTokensHere } from "./tokens-here.ts";

/** Location of the tokens: behind a gateway, or in this machine's NATS. `here`: the latter, whatever else is selected. */
export type TokensAt = { readonly url?: string; readonly data: string; readonly here?: boolean };

export type CreateTokenOptions = TokensAt & {
  readonly name: string;
  readonly role: readonly Role[];
  readonly workspace?: string;
  readonly developer?: string;
  readonly allWorkspaces?: boolean;
  readonly expires: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
};

export type ListTokensOptions = TokensAt & { readonly workspace?: string; readonly json?: boolean };

export type RevokeTokenOptions = TokensAt & { readonly json?: boolean };

export async function createToken({ name, role, expires, json, quiet, ...options }: CreateTokenOptions): Promise<void> {
  const { workspace, developer, allWorkspaces = false } = options;
  if (allWorkspaces && areElsewhere(options)) {
    throw new CommandError(
      "a token for all workspaces can only be created on the server itself: omit --url and TAPEDECK_URL there, or run `tapedeck context use local`.",
    );
  }
  await using tokens = await open(options);
  const made = await tokens.create({
    ...{ name, roles: role, expires },
    ...(workspace !== undefined && { workspace }),
    ...(developer !== undefined && { developer }),
    ...(allWorkspaces && { everywhere: true as const }),
  });
  if (json) {
    process.stdout.write(`${JSON.stringify(made)}\n`);
    return;
  }
  process.stdout.write(`${made.token}\n`);
  if (quiet) return;
  const whose = made.developer === undefined ? "" : `, for ${made.developer}`;
  const beyond = allWorkspaces ? " (with backup and rebuild of all workspaces)" : "";
  say(
    `${made.roles.join(", ")} in workspace ${made.workspace}${beyond}${whose}, until ${dayOf(made.expiresAt)}; id ${made.id}`,
  );
  say("It is shown only once. Keep it secret: export TAPEDECK_TOKEN=…");
  if (tokens.remark !== undefined) say(tokens.remark);
}

export async function listTokens({ json, ...options }: ListTokensOptions): Promise<void> {
  await using tokens = await open(options);
  const { workspace } = options;
  const all = await tokens.list();
  const items = workspace === undefined ? all : all.filter((token) => token.workspace === workspace);
  if (json) {
    process.stdout.write(`${JSON.stringify({ items })}\n`);
    return;
  }
  if (items.length === 0) {
    console.log("There are no tokens.");
    return;
  }
  const columns = ["ID", "NAME", "ROLES", "WORKSPACE", "DEVELOPER", "CREATED", "EXPIRES"].map((title) => ({ title }));
  console.log(table(columns, items.map(cellsOf)));
}

export async function revokeToken(id: string, { json, ...options }: RevokeTokenOptions): Promise<void> {
  await using tokens = await open(options);
  const revoked = await tokens.revoke(id);
  if (json) process.stdout.write(`${JSON.stringify(revoked)}\n`);
  else console.log(`revoked ${revoked.name} (${revoked.roles.join(", ")} in workspace ${revoked.workspace})`);
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
  developer = "-",
  createdAt,
  expiresAt,
}: TokenRecord): string[] {
  const isOver = Date.parse(expiresAt) <= Date.now();
  const expires = isOver ? `expired ${dayOf(expiresAt)}` : dayOf(expiresAt);
  return [
    id,
    name,
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

/** Writes to stderr: stdout is for programs. */
function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
