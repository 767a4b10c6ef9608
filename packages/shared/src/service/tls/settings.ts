import type { SettingsReader } from "../settings.ts";
import type { TlsFiles } from "./certificate.ts";

/** The certificate of query's and ingest's listeners; undefined: they speak plaintext. */
export function servicesCertificate(read: SettingsReader): TlsFiles | undefined {
  const cert = read.string("services.tls.cert", undefined, {
    description:
      "PEM file of the certificate for the gRPC of query and ingest. It needs `services.tls.key`, and `services.tls.ca` at the gateway.",
  });
  const key = read.string("services.tls.key", undefined, {
    description: "PEM file of its private key.",
  });
  return bothOrNone(read, "services.tls", cert, key);
}

/** The authorities that the gateway trusts for query and ingest; undefined: it dials them in plaintext. */
export function servicesAuthorities(read: SettingsReader): string | undefined {
  return read.string("services.tls.ca", undefined, {
    description:
      "PEM file of the authorities of both certificates. With it the gateway dials query and ingest with TLS.",
  });
}

export function bothOrNone(
  read: SettingsReader,
  setting: TlsFiles["setting"],
  cert: string | undefined,
  key: string | undefined,
): TlsFiles | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key, setting };
  if (cert !== undefined || key !== undefined) {
    const missing = cert === undefined ? "cert" : "key";
    read.addError(`${setting}.${missing}: missing; TLS needs ${setting}.cert and ${setting}.key`);
  }
  return undefined;
}
