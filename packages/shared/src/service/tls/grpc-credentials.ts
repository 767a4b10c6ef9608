import { type ChannelCredentials, credentials, ServerCredentials } from "@grpc/grpc-js";
import { type Certificate, readPem } from "./certificate.ts";

/** Credentials of a listener: plaintext without a certificate. */
export function serverCredentials(certificate: Certificate | undefined): ServerCredentials {
  return certificate === undefined ? ServerCredentials.createInsecure() : new RenewedCredentials(certificate);
}

/**
 * The credentials with which the gateway dials query and ingest: TLS that trusts the authorities in a PEM file, else
 * plaintext.
 * @throws Error one sentence about a file that can't be used
 */
export function servicesChannel(ca: string | undefined): ChannelCredentials {
  if (ca === undefined) return credentials.createInsecure();
  const authorities = readPem("services.tls.ca", ca);
  if (!authorities.includes("-----BEGIN CERTIFICATE-----")) {
    throw new Error(`services.tls.ca: ${ca} has no certificate in PEM`);
  }
  return credentials.createSsl(authorities);
}

/** The credentials that `createSsl` makes never change their certificate. */
class RenewedCredentials extends ServerCredentials {
  constructor(certificate: Certificate) {
    super({}, certificate.current());
    certificate.renewed((tls) => this.updateSecureContextOptions(tls));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
