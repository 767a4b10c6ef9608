import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { type TestCertificate, testAuthority } from "@tapedeck/shared/testing/certificates";
import type { ServiceName } from "../faults/service-process.ts";
import { loginOf, passwordsEnv, readUsers } from "../operations/nats-users.ts";

/** What a cluster needs so that every connection of it is encrypted, and every service logs in to NATS as its own user. */
export type Secured = {
  /** PEM file of the authority that has signed all certificates. */
  readonly caFile: string;
  readonly certificate: TestCertificate;
  /** Nats-server's users: those that Tapedeck ships, and one of the test's that may do everything. */
  readonly natsUsers: string;
  readonly natsEnv: Readonly<Record<string, string>>;
  /** The test's own login. */
  readonly testLogin: Readonly<Record<"user" | "password" | "ca", string>>;
};

/** Makes them in that folder. From then on this process trusts the authority, too. */
export async function secured(folder: string): Promise<Secured> {
  const authority = await testAuthority(folder, "authority");
  const certificate = await authority.issue(folder, "cluster");
  setDefaultCACertificates([...getCACertificates("default"), readFileSync(authority.certFile, "utf8")]);
  const testLogin = { user: "test", password: "test-password", ca: authority.certFile };
  const ofTest = `users: [ { user: ${testLogin.user}, password: ${testLogin.password} },`;
  return {
    caFile: authority.certFile,
    certificate,
    testLogin,
    natsEnv: passwordsEnv,
    natsUsers: (await readUsers()).replace("users: [", ofTest),
  };
}

/** The settings of a service. */
export function securedEnv(service: ServiceName, { caFile, certificate }: Secured): Readonly<Record<string, string>> {
  const { certFile, keyFile } = certificate;
  return {
    ...loginOf(service),
    TAPEDECK_NATS_CA: caFile,
    TAPEDECK_SERVICES_TLS_CERT: certFile,
    TAPEDECK_SERVICES_TLS_KEY: keyFile,
    TAPEDECK_SERVICES_TLS_CA: caFile,
    ...(service === "gateway" && { TAPEDECK_TLS_CERT: certFile, TAPEDECK_TLS_KEY: keyFile }),
  };
}
