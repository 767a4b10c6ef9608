import { spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "@tapedeck/shared/testing/until";
import { onMachine, systemPath } from "../../docker/testing/on-machine.ts";

export type BootedDebian = AsyncDisposable & {
  /** Its root folder, as this machine sees it. */
  readonly root: string;
  /** Runs a script in it, as root. @returns what it says @throws Error with all that it said */
  readonly run: (script: string) => Promise<string>;
};

/** What `bootDebian` needs of this machine. */
export const bootTools = ["mmdebstrap", "systemd-nspawn", "nsenter"];

/** A Debian sid with these packages and without recommended ones, booted: systemd is its first process. It has no network. */
export async function bootDebian(folder: string, packages: readonly string[]): Promise<BootedDebian> {
  const root = join(folder, "root");
  await onMachine("mmdebstrap", [
    ...["--quiet", "--variant=minbase", "--format=directory"],
    ...["man", "doc", "locale"].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`),
    // sid's lists are good for a week, and mirrors may be older. apt checks their signatures all the same.
    ...["APT::Install-Recommends", "Acquire::Check-Valid-Until"].map((name) => `--aptopt=${name} "false"`),
    `--include=${["systemd-sysv", "dbus", ...packages].join(",")}`,
    ...["sid", root, "http://deb.debian.org/debian"],
  ]);
  const logFile = join(folder, "console");
  const log = await open(logFile, "w");
  const flags = ["--register=no", "--keep-unit", "--private-network", "--console=pipe", "--boot"];
  const machine = spawn("systemd-nspawn", [`--directory=${root}`, "--machine=tapedeck-test", ...flags], {
    // A systemd of today knows cgroups of version 2 only, whatever this machine has.
    env: { PATH: systemPath, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: "1" },
    stdio: ["ignore", log.fd, log.fd],
  });
  await log.close();
  const ended = new Promise<void>((resolve) => machine.once("exit", () => resolve()));
  const stop = async () => {
    machine.kill("SIGTERM");
    await ended;
  };
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  const first = async () => {
    const children = `/proc/${machine.pid}/task/${machine.pid}/children`;
    return (await readFile(children, "utf8").catch(() => "")).trim().split(" ")[0] ?? "";
  };
  const run = async (script: string) =>
    onMachine("nsenter", [
      ...["--target", await first(), "--all"],
      ...["env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "sh", "-ec", script],
    ]);
  const isUp = async () => {
    if (isOver) throw new Error(await readFile(logFile, "utf8"));
    return (await run("cd; systemctl is-system-running || true").catch(() => "")).match(/running|degraded/);
  };
  try {
    await until(isUp, { message: "systemd to be up" });
  } catch (cause) {
    await stop();
    throw cause;
  }
  return { root, run, [Symbol.asyncDispose]: stop };
}
