import { CommandError } from "./command-error.ts";

/** An untrusted certificate, as opposed to an unreachable server. */
export class UntrustedCertificate extends CommandError {
  /** The problem, without the advice and without a full stop. */
  readonly what: string;
  readonly advice: string;

  constructor(base: string, reason: string, advice: string) {
    // Node.js adds advice of its own, which is for its command line.
    const what = `the certificate of ${base} is not trusted (${reason.split(";")[0]})`;
    super(`${what}: ${advice}.`);
    this.what = what;
    this.advice = advice;
  }
}

/** The code is that of a failed connection. */
export function isCertificateFault(code: string | undefined): boolean {
  return /CERT|SIGNATURE|SELF_SIGNED|TLS|SSL/.test(code ?? "");
}

/** For commands that take `--url`. */
export const urlTrustAdvice =
  "set TAPEDECK_CA to the PEM file of its authority, or use the host name in the certificate with --url";
