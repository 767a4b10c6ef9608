import { z } from "zod";
import { CommandError } from "../command-error.ts";
import { type HttpBase, httpBase } from "../gateway-address.ts";

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

/** What a gateway says of itself, and of the token that it was asked with. */
export type About = z.infer<typeof about>;

const patienceMs = 10_000;

/** @throws CommandError when nobody answers there, or not as a Tapedeck does, or the token is not good */
export async function askAbout({ base, headers }: HttpBase): Promise<About> {
  const response = await fetch(`${base}/about`, { headers, signal: AbortSignal.timeout(patienceMs) }).catch((error) => {
    const { message, code } =
      (error as { readonly cause?: NodeJS.ErrnoException }).cause ?? (error as Error & { code?: string });
    const isTls = /CERT|SIGNATURE|SELF_SIGNED|TLS|SSL/.test(code ?? "");
    const hint = isTls ? ": give the PEM file of its authority (--ca, TAPEDECK_CA)" : "";
    throw new CommandError(`no Tapedeck server answers at ${base} (${message || code})${hint}.`);
  });
  const body: unknown = await response.json().catch(() => undefined);
  const said = (body as { readonly error?: { readonly message?: string } } | undefined)?.error?.message;
  if (response.status === 401)
    throw new CommandError(`${base} does not accept this token: ${said ?? "it is not valid"}.`);
  const read = about.safeParse(body);
  if (response.ok && read.success) return read.data;
  throw new CommandError(
    `${base} is not a Tapedeck server, or an older one (GET /about answered ${response.status}${said ? `: ${said}` : ""}).`,
  );
}

/** Asks the Tapedeck that is named or chosen. */
export const aboutOf = (url?: string): Promise<About> => askAbout(httpBase(url));
