import { chmod, mkdtemp, readdir, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findNatsServer, stopLeftNatsServer } from "@tapedeck/infra/local/nats-server";
import { startPostgres } from "@tapedeck/infra/local/postgres";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** Connection string of the run's Postgres, as superuser, database `postgres`. */
    readonly postgres: string;
    /** Path of a nats-server that is new enough. */
    readonly natsServer: string;
    /** Where the run's servers keep their data; it goes at the end. */
    readonly serversFolder: string;
  }
}

/** Connection string of a Postgres to test with instead of npm's, such as one of another version: a superuser's, on an empty server, because templates of an earlier run would stay. */
const givenPostgres = process.env.TAPEDECK_TEST_POSTGRES;

/**
 * Vitest's global set-up: one real Postgres for the whole run, in which test files make databases of their own, and the
 * nats-server that each test file starts for itself (the stream's name is fixed, so sharing one would mix their logs).
 */
export default async ({ provide }: TestProject): Promise<() => Promise<void>> => {
  const bin = fileURLToPath(new URL("../../../../.tapedeck/bin", import.meta.url));
  const folder = await mkdtemp(join(await roomiestFolder(), "tapedeck-test-"));
  await chmod(folder, 0o711); // started by root, Postgres runs as another user
  const [natsServer, postgres] = await Promise.all([
    findNatsServer({ bin, log: console.log }),
    givenPostgres === undefined
      ? startPostgres({ dataDir: join(folder, "postgres"), port: 0, persistent: false, fsync: false })
      : undefined,
  ]);
  provide("natsServer", natsServer);
  provide("serversFolder", folder);
  provide("postgres", givenPostgres ?? postgres?.url("postgres") ?? "");
  return async () => {
    // A worker that was killed could not stop its own.
    const left = (await readdir(folder)).filter((name) => name.startsWith("nats-"));
    await Promise.all([postgres?.stop(), ...left.map((name) => stopLeftNatsServer(join(folder, name)))]);
    await rm(folder, { recursive: true, force: true });
  };
};

/**
 * Memory, where Linux offers enough of it as files (4 GiB; a run takes less than 2), else the folder for temporary files:
 * the servers' files are written and deleted thousands of times, which takes a fifth of the run's time on a disk.
 */
const roomiestFolder = async (): Promise<string> => {
  const memory = "/dev/shm";
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize >= 4 * 2 ** 30 ? memory : tmpdir();
};
