import { dirname } from "node:path";
import { LocalServerError } from "./local-server-error.ts";
import { run } from "./run.ts";

export type Identity = { readonly uid: number; readonly gid: number };

export type AsPostgres = {
  /** Owner of the data directory; undefined: the current user. */
  readonly owner: Identity | undefined;
  /** The command and user to spawn for a Postgres program. */
  command(
    command: string,
    args: readonly string[],
  ): { readonly command: string; readonly args: readonly string[]; readonly user: Identity | undefined };
};

const userName = "postgres";

/**
 * The user that Postgres runs as: the current one, unless it is root. Postgres refuses to run as root, so root uses the
 * system's user `postgres`, which is created if necessary.
 */
export async function asPostgres(dataDir: string, binary: string): Promise<AsPostgres> {
  if (process.getuid?.() !== 0) {
    return { owner: undefined, command: (command, args) => ({ command, args, user: undefined }) };
  }
  const owner = (await lookUp()) ?? (await make());
  if ((await canReach(owner, dirname(dataDir))) && (await canReach(owner, binary))) {
    return { owner, command: (command, args) => ({ command, args, user: owner }) };
  }
  // A project below root's home, which other users cannot enter: the server gets access to the path, and no other right
  // of root.
  const passing = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, "--clear-groups"];
  // Without the securebit access(2), which initdb asks, does not count the capability.
  const capability = [
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--securebits=+no_setuid_fixup",
    "--",
  ];
  const prefix = [...passing, ...capability];
  if ((await run("setpriv", [...prefix, "test", "-x", binary])).code === 0) {
    return {
      owner,
      command: (command, args) => ({ command: "setpriv", args: [...prefix, command, ...args], user: undefined }),
    };
  }
  throw new LocalServerError(
    `Postgres refuses to run as root, and the user ${userName} may not enter ${dirname(dataDir)}: start as a plain user, or put the project where ${userName} can read it.`,
  );
}

async function make(): Promise<Identity> {
  await run("useradd", ["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", userName]);
  const made = await lookUp();
  if (made) return made;
  throw new LocalServerError(
    `Postgres refuses to run as root and there is no user ${userName} to run as: create one (useradd --system ${userName}) or start as a plain user.`,
  );
}

async function lookUp(): Promise<Identity | undefined> {
  const [uid, gid] = await Promise.all([run("id", ["-u", userName]), run("id", ["-g", userName])]);
  return uid.code === 0 && gid.code === 0 ? { uid: Number(uid.stdout), gid: Number(gid.stdout) } : undefined;
}

async function canReach(who: Identity, path: string): Promise<boolean> {
  return (await run("test", ["-x", path], { ...who, cwd: "/" })).code === 0;
}
