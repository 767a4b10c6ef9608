import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Name of the folder that holds the Vagrantfile, which Vagrant looks for upwards; else of the folder itself. */
export function vagrantProject(folder: string, env: Readonly<Record<string, string | undefined>>): string {
  const start = resolve(folder, env.VAGRANT_CWD ?? "");
  const names = env.VAGRANT_VAGRANTFILE ? [env.VAGRANT_VAGRANTFILE] : ["Vagrantfile", "vagrantfile"];
  for (let at = start; ; at = dirname(at)) {
    if (names.some((name) => existsSync(join(at, name)))) return basename(at) || "project";
    if (at === dirname(at)) return basename(start) || "project";
  }
}
