import { spawn } from "node:child_process";
import { chown, mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { collect, type RunningCli } from "tapedeck/testing/cli";
import { onMachine, systemPath } from "./on-machine.ts";

/** What of an OCI runtime's configuration is read or changed here (opencontainers/runtime-spec). */
type RuntimeConfig = {
  readonly process: {
    readonly args: readonly string[];
    readonly env: readonly string[];
    readonly [key: string]: unknown;
  };
  readonly mounts: readonly { readonly type: string }[];
  readonly linux: {
    readonly namespaces: readonly { readonly type: string }[];
    readonly maskedPaths?: readonly string[];
    readonly readonlyPaths?: readonly string[];
  };
  readonly [key: string]: unknown;
};

export type StartContainer = {
  /** What `umoci unpack` made of the image. */
  readonly bundle: string;
  /** The entrypoint's words. */
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Replaces the image's entrypoint. */
  readonly entrypoint?: readonly string[];
  /** A folder that it sees as /run/services-tls, as in compose.tls.yaml, and can't write. */
  readonly mounted?: string;
};

/**
 * Runs an unpacked image with runc, as its configuration says: as its user, without capabilities, on a root file system
 * that can't be written, but for /tmp and a spill of its own. The network is the machine's.
 */
export async function startContainer({
  bundle,
  words,
  env = {},
  entrypoint,
  mounted,
}: StartContainer): Promise<RunningCli> {
  const folder = await mkdtemp(join(bundle, "container-"));
  const spill = join(folder, "spill");
  await mkdir(spill, { mode: 0o700 });
  await chown(spill, 10_001, 10_001);
  const config: RuntimeConfig = JSON.parse(await readFile(join(bundle, "config.json"), "utf8"));
  const [first = ""] = config.process.args;
  const added = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const changed = {
    ...config,
    root: { path: join(bundle, "rootfs"), readonly: true },
    process: {
      ...config.process,
      args: [...(entrypoint ?? [first]), ...words],
      env: [...config.process.env, ...added],
      terminal: false,
      noNewPrivileges: true,
      capabilities: {},
    },
    mounts: [
      ...config.mounts.filter(({ type }) => type !== "cgroup"),
      { destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "mode=1777"] },
      { destination: "/var/lib/tapedeck/spill", type: "none", source: spill, options: ["rbind", "rw"] },
      ...(mounted === undefined
        ? []
        : [{ destination: "/run/services-tls", type: "none", source: mounted, options: ["rbind", "ro"] }]),
    ],
    // Without bounds of what it may take: they are not what is tested.
    linux: {
      namespaces: config.linux.namespaces.filter(({ type }) => !["network", "cgroup"].includes(type)),
      maskedPaths: config.linux.maskedPaths,
      readonlyPaths: config.linux.readonlyPaths,
    },
  };
  await writeFile(join(folder, "config.json"), JSON.stringify(changed));
  const name = `tapedeck-test-${process.pid}-${folder.slice(-6)}`;
  const state = ["--root", join(folder, "state")];
  const running = collect(
    spawn("runc", [...state, "run", "--bundle", folder, name], {
      env: { PATH: systemPath },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    }),
  );
  return {
    ...running,
    [Symbol.asyncDispose]: async () => {
      await onMachine("runc", [...state, "delete", "--force", name]);
      await running.ended;
    },
  };
}
