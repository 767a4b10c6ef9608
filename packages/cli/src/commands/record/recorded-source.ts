import { readConfig, type SourceConfig } from "@tapedeck/ingest/for-cli/settings";
import { loginName } from "@tapedeck/shared/service/login-name";
import { SettingsError } from "@tapedeck/shared/service/settings";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { CommandError } from "../../command-error.ts";
import { projectName } from "../../recording/project-name.ts";
import { vagrantProject } from "../../recording/vagrant-project.ts";
import type { RecordOptions } from "./options.ts";

type FolderNames = { readonly developer: string; readonly project: string };

/** How sources of a folder are named. Any other upstream is recorded from anywhere, under the names that ingest gives it. */
const folderNames: Partial<Readonly<Record<UpstreamName, (env: NodeJS.ProcessEnv) => FolderNames>>> = {
  skaffold: () => ({ developer: loginName(), project: projectName(process.cwd(), undefined) }),
  vagrant: (env) => ({ developer: loginName(), project: vagrantProject(process.cwd(), env) }),
};

/** The upstream belongs to the folder in which the command runs, whose branch and commit are labels of its sessions. */
export function isOfFolder(upstream: UpstreamName): boolean {
  return folderNames[upstream] !== undefined;
}

/**
 * The source to record, as a source in tapedeck.yaml would describe it.
 * @throws CommandError when something is missing or wrong
 */
export function recordedSource(options: RecordOptions, env: NodeJS.ProcessEnv): SourceConfig {
  const { upstream, address, developer, project, label, redact, set } = options;
  if (upstream === undefined || address === undefined) {
    throw new CommandError("specify what to record, such as --upstream skaffold --address 127.0.0.1:50051");
  }
  const source = {
    ...set,
    ...folderNames[upstream]?.(env),
    ...(developer && { developer }),
    ...(project && { project }),
    upstream,
    address,
    redact,
    labels: label ?? {},
  };
  try {
    const { sources } = readConfig({ env: { TAPEDECK_SOURCES: JSON.stringify([source]) } });
    const [config] = sources;
    if (config !== undefined) return config;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CommandError(
      error.errors.map((reason) => reason.replace(/^TAPEDECK_SOURCES\.0[.:] ?/, "--set ")).join("; "),
    );
  }
  throw new CommandError("there is nothing to record");
}
