import { commandToStart } from "@tapedeck/shared/installation";
import { closedConnection } from "../closed-connection.ts";
import { CommandError } from "../command-error.ts";
import { shortSource } from "../display/source-name.ts";
import { httpBase } from "../gateway-address.ts";
import { lineNaming } from "../line-naming.ts";
import { isCertificateFault, UntrustedCertificate, urlTrustAdvice } from "../untrusted-certificate.ts";

export type Parameters = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Tapedeck's HTTP API, as much of it as the commands ask. */
export type ApiClient = {
  readonly base: string;
  readonly token: string | undefined;
  /** @throws CommandError with the gateway's message, or if it does not answer */
  readonly get: <Answer>(path: string, parameters?: Parameters) => Promise<Answer>;
  /** The body as it is, for answers that are not JSON; undefined for a 404. Throws as `get` does without an answer. */
  readonly text: (path: string) => Promise<string | undefined>;
  /** A call that changes something; undefined where there is nothing to answer. Throws as `get` does. */
  readonly send: <Answer>(method: "POST" | "DELETE", path: string, body?: object) => Promise<Answer>;
};

/** A list as the gateway gives it. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

type ErrorBody = {
  readonly error?: {
    readonly code?: string;
    readonly message?: string;
    readonly choices?: readonly string[];
    readonly earliest?: string;
    readonly loss?: string;
  };
};

/** The log has lost the requested events. It has those after `earliest`. */
export class LostEventsError extends CommandError {
  readonly earliest: string;

  constructor(message: string, earliest: string) {
    super(message);
    this.earliest = earliest;
  }
}

/** Reaches the Tapedeck that is named, or chosen (`chosenTapedeck`), with its token, and trusts its certificates. */
export function apiAt(url?: string): ApiClient {
  const { base, headers, token } = httpBase(url);
  const answerTo = (path: string, init: RequestInit): Promise<Response> =>
    fetch(`${base}${path}`, { ...init, headers: { ...headers, ...init.headers } }).catch((error: unknown) => {
      throw unreachable(base, error);
    });
  const ask = async <Answer>(path: string, init: RequestInit): Promise<Answer> => {
    const response = await answerTo(path, init);
    const body: unknown = await response.json().catch(() => undefined);
    if (response.ok) return body as Answer;
    const { error } = (body ?? {}) as ErrorBody;
    if (error?.choices !== undefined) throw severalSources(error.choices, lineNaming(error.choices[0] ?? ""));
    // The message is written for API clients.
    const message = error?.message?.replace("GET /api/v1/sources lists", "`tapedeck status` lists");
    if (error?.loss === "lost" && error.earliest !== undefined)
      throw new LostEventsError(message ?? "", error.earliest);
    const when = error?.code === "before_first" ? await timeOfPosition(error.earliest) : "";
    throw new CommandError(message === undefined ? `${base} answered ${response.status}` : `${message}${when}`);
  };
  /** When the event at a position was recorded, for people, who can't read that from it. */
  const timeOfPosition = async (position = ""): Promise<string> => {
    const query = queryOf({ until: position, last: 1 });
    const answer = await answerTo(`/api/v1/events${query}`, {});
    const body = (await answer.json().catch(() => undefined)) as Partial<Page<{ recordedAt: string }>> | undefined;
    const [event] = body?.items ?? [];
    // sv-SE writes a time as 2026-01-31 12:03:41.
    return event === undefined ? "" : `, which was recorded at ${new Date(event.recordedAt).toLocaleString("sv-SE")}`;
  };
  return {
    base,
    token,
    get: (path, parameters = {}) => ask(`${path}${queryOf(parameters)}`, {}),
    async text(path) {
      const response = await answerTo(path, {});
      return response.ok ? await response.text() : undefined;
    },
    send: (method, path, body) =>
      ask(path, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
      }),
  };
}

/** More would hide the sentence. */
const maxChoices = 20;

/** `example`: a line that names one of them. */
export function severalSources(sources: readonly string[], example = ""): CommandError {
  const names = sources.slice(0, maxChoices).map(shortSource);
  const more = sources.length > maxChoices ? ` and ${sources.length - maxChoices} more` : "";
  const line = example === "" ? "" : `\n    ${example}`;
  return new CommandError(`several sources match: choose one with -s (${names.join(", ")}${more}).${line}`);
}

/** Why `fetch` got no answer, and what to do. */
export function unreachable(base: string, error: unknown): CommandError {
  const { code, message } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return isCertificateFault(code) ? new UntrustedCertificate(base, message, urlTrustAdvice) : nobodyAnswers(base, code);
}

/** The code is that of the failed connection. */
export function nobodyAnswers(base: string, code?: string): CommandError {
  const closed = closedConnection(base, code);
  if (closed !== undefined)
    return new CommandError(`${closed}: give its https address with --url or \`tapedeck login\`.`);
  return new CommandError(
    `no Tapedeck server answers at ${base}: start one with \`${commandToStart()}\`, or give its address with --url or \`tapedeck login\`.`,
  );
}

function queryOf(parameters: Parameters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
  }
  return query.size === 0 ? "" : `?${query}`;
}
