import { largestPage } from "@tapedeck/shared/largest-page";
import { nearest } from "@tapedeck/shared/nearest";
import { type ApiClient, type Page, severalSources } from "../api/api.ts";
import { CommandError } from "../command-error.ts";
import { coloured } from "../display/colour.ts";
import { isErrorTerminal, printError } from "../display/output.ts";
import { spokenSource } from "../display/source-name.ts";
import { lineNaming } from "../line-naming.ts";
import { sourcesOfFolder } from "./folder-source.ts";
import { type Matching, matchingSources } from "./matching.ts";

/**
 * The source that a command is about: the one that is named, if only in part; else the one as which `tapedeck run` records in
 * this folder. Undefined: neither, so the server decides.
 * @throws CommandError for a name that several sources have, or none
 */
export async function oneSource(api: ApiClient, named: string | undefined): Promise<string | undefined> {
  if (named === undefined) {
    const [first, ...others] = await sourcesOfFolder(api, (project) => listed(api, { project }));
    if (others.length > 0 && first !== undefined) throw severalSources([first, ...others], lineNaming(first));
    return first;
  }
  const { sources } = await matching(api, named);
  if (sources.length > 1) throw severalSources(sources, lineNaming(sources[0] ?? "", named));
  return sources[0] ?? named;
}

/** The sources to which named ones narrow a list; undefined: no name is given. A developer or a project has several. */
export async function namedSources(
  api: ApiClient,
  named: readonly string[] = [],
): Promise<readonly string[] | undefined> {
  if (named.length === 0) return undefined;
  const found = await Promise.all(
    named.map(async (text) => {
      const { sources, isExact } = await matching(api, text);
      if (sources.length > 1 && !isExact) throw severalSources(sources, lineNaming(sources[0] ?? "", text));
      // What is not recorded yet may come.
      return sources.length === 0 ? [text] : sources;
    }),
  );
  return [...new Set(found.flat())];
}

/** `namedSources`, or the source of this folder. A terminal says that not all are meant. */
export async function sourcesOrFolder(
  api: ApiClient,
  named: readonly string[] | undefined,
): Promise<readonly string[] | undefined> {
  const sources = await namedSources(api, named);
  if (sources !== undefined) return sources;
  const own = await oneSource(api, undefined);
  if (own === undefined) return undefined;
  if (isErrorTerminal())
    printError(coloured("dim", `${spokenSource(own)}, because of this folder (--all: all sources)`));
  return [own];
}

/** @throws CommandError for a piece of a name that no source has */
async function matching(api: ApiClient, text: string): Promise<Matching> {
  const isWhole = text.includes("/");
  if (isWhole) {
    const sources = await listed(api, { source: text });
    if (sources.length > 0) return { sources, isExact: true };
  }
  const all = await allSources(api);
  const found = matchingSources(text, all);
  if (found.sources.length > 0 || isWhole) return found;
  const near = nearest(text, [...new Set(all.flatMap((source) => source.split("/").slice(1, 3)))]);
  const meant = near === undefined ? "`tapedeck status` lists all" : `did you mean ${near}?`;
  throw new CommandError(`no source has "${text}" in its name: ${meant}`);
}

const allSources = (api: ApiClient) => listed(api, {});

async function listed(
  api: ApiClient,
  filter: { readonly source?: string; readonly project?: readonly string[] },
): Promise<readonly string[]> {
  const found: string[] = [];
  for (let page: string | undefined = ""; page !== undefined; ) {
    const list: Page<{ readonly source: string }> = await api.get("/api/v1/sources", {
      ...filter,
      limit: largestPage,
      page: page === "" ? undefined : page,
    });
    found.push(...list.items.map(({ source }) => source));
    page = list.nextPage;
  }
  return found;
}
