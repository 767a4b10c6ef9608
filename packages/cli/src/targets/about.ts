import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import { z } from "zod";
import { closedConnection } from "../closed-connection.ts";
import { CommandError } from "../command-error.ts";
import type { HttpBase } from "../gateway-address.ts";
import { isCertificateFault, UntrustedCertificate } from "../untrusted-certificate.ts";

const about = z.object({
  version: z.string(),
  grpcPort: z.int().min(1).max(65_535),
  auth: z.enum(["none", "tokens"]),
  time: z.iso.datetime(),
  token: z
    .object({
      name: z.string(),
      workspace: z.string(),
      roles: z.array(z.string()),
      developer: z.string().optional(),
    })
    .optional(),
});

/** What a gateway reports about itself and the caller's token. */
export type ServerInfo = z.infer<typeof about>;

const timeoutMs = 10_000;

/**
 * `trustAdvice`: what to do about an untrusted certificate.
 * @throws UntrustedCertificate
 * @throws CommandError if there is no answer, or not a Tapedeck's, or the token is not valid
 */
export async function askAbout({ base, headers }: HttpBase, trustAdvice: string): Promise<ServerInfo> {
  const response = await fetch(`${base}/about`, { headers, signal: timeoutSignal(timeoutMs) }).catch((error) => {
    const { message, code } =
      (error as { readonly cause?: NodeJS.ErrnoException }).cause ?? (error as Error & { code?: string });
    if (isCertificateFault(code)) throw new UntrustedCertificate(base, message, trustAdvice);
    throw new CommandError(
      `${closedConnection(base, code) ?? `no Tapedeck server answers at ${base}`} (${message || code}).`,
    );
  });
  const body: unknown = await response.json().catch(() => undefined);
  const message = (body as { readonly error?: { readonly message?: string } } | undefined)?.error?.message;
  if (response.status === 401)
    throw new CommandError(`${base} does not accept this token: ${message ?? "it is not valid"}.`);
  const read = about.safeParse(body);
  if (response.ok && read.success) return read.data;
  throw new CommandError(
    `${base} is not a Tapedeck server (GET /about answered ${response.status}${message ? `: ${message}` : ""}).`,
  );
}
