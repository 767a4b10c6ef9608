import { ServerCredentials } from "@grpc/grpc-js";
import type { Certificate } from "../tls.ts";

/** Of a listener; without a certificate in plaintext. */
export function serverCredentials(certificate: Certificate | undefined): ServerCredentials {
  return certificate === undefined ? ServerCredentials.createInsecure() : new RenewedCredentials(certificate);
}

/** What `createSsl` makes keeps its first certificate for ever. */
class RenewedCredentials extends ServerCredentials {
  constructor(certificate: Certificate) {
    super({}, certificate.current());
    certificate.renewed((tls) => this.updateSecureContextOptions(tls));
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
