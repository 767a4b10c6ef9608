import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";

/** Paths of PEM files: the certificate with those between it and its authority, and its key. */
export type TlsFiles = { readonly cert: string; readonly key: string };

export type Tls = { readonly cert: Buffer; readonly key: Buffer };

/** @throws Error one sentence that names the setting and the file */
export function readTls(files: TlsFiles): Tls {
  const cert = readPem("tls.cert", files.cert);
  const key = readPem("tls.key", files.key);
  const certificate = parsed("tls.cert", files.cert, "a certificate", () => new X509Certificate(cert));
  const privateKey = parsed("tls.key", files.key, "a private key without a passphrase", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Error(`tls.key: ${files.key} is not the key of the certificate in ${files.cert}`);
  }
  if (certificate.validToDate.getTime() <= Date.now()) {
    throw new Error(`tls.cert: the certificate in ${files.cert} has expired on ${certificate.validTo}`);
  }
  parsed("tls.cert", files.cert, "a chain of certificates", () => createSecureContext({ cert, key }));
  return { cert, key };
}

function readPem(setting: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : (cause as Error).message;
    throw new Error(`${setting}: ${path} can't be read (${why})`, { cause });
  }
}

function parsed<T>(setting: string, path: string, what: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new Error(`${setting}: ${path} is not ${what} in PEM`, { cause });
  }
}
