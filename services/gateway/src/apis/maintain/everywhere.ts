import { TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Caller } from "../../call-context.ts";

/** An admin of one workspace has no right to the others' data. @throws TapedeckError forbidden */
export function assertEverywhere({ roles, everywhere }: Caller): void {
  if (roles === undefined || everywhere === true) return;
  throw new TapedeckError(
    "forbidden",
    "this concerns all workspaces: it needs an admin's token for all of them, created on the server with `tapedeck token create --role admin --all-workspaces`",
  );
}
