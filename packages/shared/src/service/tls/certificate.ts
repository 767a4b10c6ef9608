import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { startInterval, stopTimer } from "../../sync/timers.ts";
import { Gauge, type Registry } from "../metrics.ts";

/** Paths of PEM files: the certificate with those between it and its authority, and its key. */
export type TlsFiles = {
  readonly cert: string;
  readonly key: string;
  /** The prefix of both settings, for errors. */
  readonly setting: "tls" | "services.tls";
};

/** A certificate and its private key in PEM. */
export type Tls = { readonly cert: Buffer; readonly key: Buffer };

/** The certificate of listeners. Its files are read again when they change, so it can be renewed without a restart. */
export type Certificate = Disposable & {
  readonly current: () => Tls;
  /** Calls the listener with each later certificate. */
  readonly renewed: (listener: (tls: Tls) => void) => void;
};

/** How a certificate is read, and read again when its files change. */
export type CertificateOptions = {
  /** Reports a renewal, and files that can't be used: the certificate before stays in use until they can. */
  readonly warn: (message: string) => void;
  /** How often the files are checked. Default 60,000. */
  readonly checkMs?: number;
  /** Reports until when the certificate is valid. */
  readonly registry?: Registry;
};

/** @throws Error one sentence that names the setting and the file */
export function openCertificate(
  files: TlsFiles,
  { warn, checkMs = 60_000, registry }: CertificateOptions,
): Certificate {
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
      warn(`the certificate in ${files.cert} is new and now in use`);
    } catch (error) {
      const { message } = error as Error;
      if (message !== complaint) warn(message);
      complaint = message;
    }
  };
  const timer = startInterval(check, checkMs);
  if (registry !== undefined) reportExpiry(registry, files.setting, () => current);
  return {
    current: () => current,
    renewed: (listener) => void listeners.push(listener),
    [Symbol.dispose]: () => stopTimer(timer),
  };
}

function reportExpiry(registry: Registry, setting: string, current: () => Tls): void {
  new Gauge({
    name: "tapedeck_certificate_expiry_timestamp_seconds",
    help: "Until when the certificate of a listener is valid, Unix time.",
    labelNames: ["setting"],
    registers: [registry],
    collect() {
      this.set({ setting }, endMsOf(new X509Certificate(current().cert)) / 1_000);
    },
  });
}

/** Why a certificate can't be used; undefined when it can. */
export function certificateError(files: TlsFiles): string | undefined {
  try {
    readTls(files);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function readTls(files: TlsFiles): Tls {
  const [certSetting, keySetting] = [`${files.setting}.cert`, `${files.setting}.key`];
  const cert = readPem(certSetting, files.cert);
  const key = readPem(keySetting, files.key);
  const certificate = parsed(certSetting, files.cert, "a certificate", () => new X509Certificate(cert));
  const privateKey = parsed(keySetting, files.key, "a private key without a passphrase", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Error(`${keySetting}: ${files.key} is not the key of the certificate in ${files.cert}`);
  }
  if (endMsOf(certificate) <= Date.now()) {
    throw new Error(`${certSetting}: the certificate in ${files.cert} has expired on ${certificate.validTo}`);
  }
  parsed(certSetting, files.cert, "a chain of certificates", () => createSecureContext({ cert, key }));
  return { cert, key };
}

/** Until when it is valid, in ms since 1970. Nodes before 22 have no `validToDate`. */
function endMsOf({ validTo }: X509Certificate): number {
  return Date.parse(validTo);
}

/** @throws Error one sentence that names the setting and the file */
export function readPem(setting: string, path: string): Buffer {
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
