import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";

/** Paths of PEM files: the certificate with those between it and its authority, and its key. */
export type TlsFiles = { readonly cert: string; readonly key: string };

export type Tls = { readonly cert: Buffer; readonly key: Buffer };

/** The certificate of listeners. Its files are read again when they change, so it can be renewed without a restart. */
export type Certificate = Disposable & {
  readonly current: () => Tls;
  /** Calls the listener with each later certificate. */
  readonly renewed: (listener: (tls: Tls) => void) => void;
};

export type CertificateOptions = {
  /** Reports a renewal, and files that can't be used: the certificate before stays in use until they can. */
  readonly say: (message: string) => void;
  /** How often the files are checked. Default 60,000. */
  readonly checkMs?: number;
};

/** @throws Error one sentence that names the setting and the file */
export function openCertificate(files: TlsFiles, { say, checkMs = 60_000 }: CertificateOptions): Certificate {
  let current = readTls(files);
  let complaint = "";
  const listeners: ((tls: Tls) => void)[] = [];
  const check = () => {
    try {
      const now = readTls(files);
      complaint = "";
      if (now.cert.equals(current.cert) && now.key.equals(current.key)) return;
      current = now;
      for (const listener of listeners) listener(now);
      say(`the certificate in ${files.cert} is new, and is used from now on`);
    } catch (error) {
      const { message } = error as Error;
      if (message !== complaint) say(message);
      complaint = message;
    }
  };
  const timer = setInterval(check, checkMs);
  return {
    current: () => current,
    renewed: (listener) => void listeners.push(listener),
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Why a certificate can't be used; undefined when it can. */
export function certificateProblem(files: TlsFiles): string | undefined {
  try {
    readTls(files);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function readTls(files: TlsFiles): Tls {
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
