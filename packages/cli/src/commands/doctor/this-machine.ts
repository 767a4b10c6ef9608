import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { loginName } from "@tapedeck/shared/service/login-name";
import { namePart } from "@tapedeck/shared/source";
import { bytesText } from "../../display/durations.ts";
import { countWaiting } from "../../local-server/waiting-spills.ts";
import { onPath } from "../../on-path.ts";
import { projectName } from "../../recording/project-name.ts";
import { spillHome } from "../../recording/spill-home.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

const leastNode = 20;
const leastFreeBytes = { fail: 256 * 1024 ** 2, warn: 2 * 1024 ** 3 } as const;

export function checkNode(version = process.versions.node): Finding {
  const major = Number(version.split(".")[0]);
  if (major >= leastNode) return ok("Node.js", `${version}`);
  return fail("Node.js", `${version} is too old`, `install Node.js ${leastNode} or newer`);
}

/** Checks the folder in which `up` keeps the log, or will keep it. */
export async function checkDataFolder(folder: string): Promise<readonly Finding[]> {
  const is = await stat(folder).catch(() => undefined);
  if (is !== undefined && !is.isDirectory()) {
    return [fail("data folder", `${folder} is a file`, "choose another with --data")];
  }
  const there = await firstThere(folder);
  const canWrite = await access(there, constants.W_OK).then(
    () => true,
    () => false,
  );
  const state = is === undefined ? `${folder} (created at the first start)` : folder;
  const owner = canWrite
    ? ok("data folder", state)
    : fail("data folder", `this user can't write to ${there}`, "run as its owner, or choose another with --data");
  const { bavail, bsize } = await statfs(there);
  return [owner, diskFinding(bavail * bsize)];
}

export function diskFinding(free: number): Finding {
  const text = `${bytesText(free)} free`;
  if (free < leastFreeBytes.fail) return fail("disk", text, "free some space: nothing is recorded on a full disk");
  if (free < leastFreeBytes.warn) return warn("disk", text, "free some space soon, or shorten retention.text");
  return ok("disk", text);
}

async function firstThere(folder: string): Promise<string> {
  const is = await stat(folder).catch(() => undefined);
  return is !== undefined || dirname(folder) === folder ? folder : firstThere(dirname(folder));
}

/** What `tapedeck run` records here, and as whose. */
export function checkNames(env: NodeJS.ProcessEnv, folder: string): Finding {
  const texts = [env.TAPEDECK_DEVELOPER || loginName(), env.TAPEDECK_PROJECT || projectName(folder, undefined)];
  const names = texts.map(namePart);
  const source = names.join("/");
  if (texts.every((name, index) => name === names[index])) return ok("names", `recorded here as ${source}`);
  return warn(
    "names",
    `${texts.join("/")} is recorded here as ${source}`,
    "set TAPEDECK_DEVELOPER or TAPEDECK_PROJECT if that is not what you want (lowercase letters, digits, - and _)",
  );
}

export async function checkSpill(env: NodeJS.ProcessEnv): Promise<Finding> {
  const home = spillHome(env);
  const waiting = await countWaiting(home);
  if (waiting === 0) return ok("spill", "no recordings wait");
  const runs = waiting === 1 ? "1 recording waits" : `${waiting} recordings wait`;
  return warn("spill", `${runs} in ${home}`, "start Tapedeck, or run `tapedeck record --waiting`");
}

/** The programs that `tapedeck run` can record. A missing one is no failure. */
export function checkPrograms(path: string | undefined): readonly Finding[] {
  const names = { Skaffold: ["skaffold"], Vagrant: ["vagrant-go", "vagrant"] } as const;
  return Object.entries(names).map(([what, programs]) => {
    const [found] = programs.flatMap((program) => onPath(program, path) ?? []);
    if (found !== undefined) return ok(what, found);
    const advice = "no action needed unless you want to record it here";
    return warn(what, `no ${programs.join(" or ")} on the PATH`, advice);
  });
}
