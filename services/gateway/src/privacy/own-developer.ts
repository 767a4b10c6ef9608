import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type DeveloperVisibility, developersSetting } from "@tapedeck/shared/service/common-settings";
import type { Caller } from "../call-context.ts";

/** A name that no developer can have: a caller of whom no developer is known has no recordings. */
export const nobody = "!";

/**
 * The one developer whose recordings a caller may see; undefined: all of the workspace. Without roles a caller counts as a viewer,
 * because hidden developers need tokens.
 */
export function onlyDeveloper(
  visibility: DeveloperVisibility,
  { roles, developer }: Pick<Caller, "roles" | "developer">,
): string | undefined {
  if (visibility === "shown") return undefined;
  if (visibility === "hidden" && roles?.has("admin") === true) return undefined;
  return developer ?? nobody;
}

/** Whether a source's full name has this developer. */
export function isOf(developer: string, source: string): boolean {
  return source.split("/")[1] === developer;
}

/**
 * Refuses a call that names another developer, whether or not there is one of that name. `sources`: as in a filter, with or
 * without the workspace.
 * @throws TapedeckError forbidden
 */
export function refuseOthers(
  developer: string,
  { developers = [], sources = [] }: { readonly developers?: readonly string[]; readonly sources?: readonly string[] },
): void {
  const named = [...developers, ...sources.map(developerIn)];
  if (named.every((name) => name === developer)) return;
  const whose =
    developer === nobody
      ? "this token is of no developer, so it sees none"
      : `this token sees those of "${developer}" only`;
  throw new TapedeckError(
    "forbidden",
    `the recordings of other developers are hidden here (${developersSetting}): ${whose}, and sums of the team`,
  );
}

function developerIn(source: string): string {
  const parts = source.split("/");
  return (parts.length === 4 ? parts[1] : parts[0]) ?? "";
}
