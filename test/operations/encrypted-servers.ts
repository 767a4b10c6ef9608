import { chown, copyFile, mkdtemp, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Postgres, startPostgres } from "@tapedeck/infra/local/postgres";
import { type TestAuthority, type TestCertificate, testAuthority } from "@tapedeck/shared/testing/certificates";
import { Client } from "pg";
import { inject } from "vitest";
import { type ConfiguredNats, startConfiguredNats } from "./configured-nats.ts";

/** A NATS and a Postgres with TLS, and certificates for services, all from one authority. */
export type EncryptedServers = AsyncDisposable & {
  readonly folder: string;
  readonly authority: TestAuthority;
  readonly nats: ConfiguredNats;
  /** Returns the connection string of a database; its certificate is checked against these authorities. */
  readonly database: (ca?: string) => string;
  /** The certificate of query and ingest. */
  readonly services: TestCertificate;
  /** Gives all of them another certificate, of the same authority or another one, as an operator does. */
  renew(by?: TestAuthority): Promise<void>;
};

export async function startEncryptedServers(): Promise<EncryptedServers> {
  await using cleanup = new AsyncDisposableStack();
  const folder = await mkdtemp(join(inject("serversFolder"), "tls-"));
  const authority = await testAuthority(folder, "authority");
  const services = await authority.issue(folder, "services");
  const { certFile, keyFile } = await authority.issue(folder, "nats");
  const nats = cleanup.use(
    await startConfiguredNats({
      configuration: `tls { cert_file: ${JSON.stringify(certFile)}, key_file: ${JSON.stringify(keyFile)} }`,
    }),
  );
  const dataDir = join(folder, "postgres");
  const postgres = await startPostgres({ dataDir, port: 0, persistent: false, fsync: false });
  cleanup.defer(() => postgres.stop());
  await postgres.ensureDatabase("tapedeck");
  await certify(postgres, dataDir, await authority.issue(folder, "postgres"));
  const owned = cleanup.move();
  return {
    folder,
    authority,
    nats,
    services,
    database(ca = authority.certFile) {
      const url = new URL(postgres.url("tapedeck"));
      url.hostname = "localhost";
      url.search = new URLSearchParams({ sslmode: "verify-full", sslrootcert: ca }).toString();
      return url.href;
    },
    async renew(by = authority) {
      await by.issue(folder, "services");
      await by.issue(folder, "nats");
      nats.reload();
      await certify(postgres, dataDir, await by.issue(folder, "postgres"));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Postgres reads a key only from a file of its own user, and rereads renewed files when it reloads. */
export async function certify(
  postgres: Pick<Postgres, "url">,
  dataDir: string,
  { certFile, keyFile }: Pick<TestCertificate, "certFile" | "keyFile">,
): Promise<void> {
  const { uid, gid } = await stat(dataDir);
  for (const [from, name] of [
    [certFile, "server.crt"],
    [keyFile, "server.key"],
  ] as const) {
    await copyFile(from, join(dataDir, name));
    await chown(join(dataDir, name), uid, gid);
  }
  const client = new Client(postgres.url("postgres"));
  await client.connect();
  await client.query("alter system set ssl = on");
  await client.query("select pg_reload_conf()");
  await client.end();
}
