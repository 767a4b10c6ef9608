import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Caller } from "../../call-context.ts";

/** Whether the caller may know of all workspaces. */
export function seesAll({ roles, everywhere }: Pick<Caller, "roles" | "everywhere">): boolean {
  return roles === undefined || everywhere === true;
}

/** An admin of one workspace has no right to know of others. @throws TapedeckError forbidden */
export function assertSees(workspace: string, caller: Caller): void {
  if (workspace !== caller.workspace) assertEverywhere(caller);
}

/** An admin of one workspace has no right to the others' data. @throws TapedeckError forbidden */
export function assertEverywhere(caller: Caller): void {
  if (seesAll(caller)) return;
  throw new TapedeckError(
    "forbidden",
    "this concerns all workspaces: it needs an admin's token for all of them, created on the server with `tapedeck token create --role admin --all-workspaces`",
  );
}
