import { loginName } from "@tapedeck/shared/service/login-name";
import { namePart } from "@tapedeck/shared/source";
import type { ApiClient } from "../api/api.ts";
import { projectName } from "../recording/project-name.ts";
import { vagrantProject } from "../recording/vagrant-project.ts";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The recorded sources under whose names `tapedeck run` records in this folder. `listed`: those of these projects, because a
 * server may have thousands of others.
 */
export async function sourcesOfFolder(
  api: ApiClient,
  listed: (projects: readonly string[]) => Promise<readonly string[]>,
  { folder = process.cwd(), env = process.env }: { readonly folder?: string; readonly env?: Env } = {},
): Promise<readonly string[]> {
  const project = env.TAPEDECK_PROJECT;
  const projects = {
    skaffold: namePart(project || projectName(folder, undefined)),
    vagrant: namePart(project || vagrantProject(folder, env)),
  };
  const sources = await listed([...new Set(Object.values(projects))]);
  const possible = sources.filter((source) => {
    const [, , ofProject, upstream = ""] = source.split("/");
    return Object.entries(projects).some(([name, own]) => name === upstream && own === ofProject);
  });
  // Nobody has to be asked for the developer's name where no name of a project fits.
  if (possible.length === 0) return [];
  const developer = namePart(env.TAPEDECK_DEVELOPER || (await developerOfToken(api)) || loginName());
  return possible.filter((source) => source.split("/")[1] === developer);
}

/** A recorder's token may record for one developer only, whatever the login's name is. */
async function developerOfToken({ token, get }: ApiClient): Promise<string | undefined> {
  if (token === undefined) return undefined;
  const about = await get<{ readonly token?: { readonly developer?: string } }>("/about");
  return about.token?.developer;
}
