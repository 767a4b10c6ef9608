import { ServerCredentials } from "@grpc/grpc-js";
import type { Certificate } from "../tls.ts";

/** Credentials of a listener: plaintext without a certificate. */
export function serverCredentials(certificate: Certificate | undefined): ServerCredentials {
  return certificate === undefined ? ServerCredentials.createInsecure() : new RenewedCredentials(certificate);
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
