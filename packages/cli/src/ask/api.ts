import { existsSync } from "node:fs";
import { loadSettingsFile, settingsReader } from "@tapedeck/shared/service/settings";
import { CommandError } from "../command-error.ts";

export type Parameters = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** Tapedeck's HTTP API, as much of it as the commands ask. */
export type Api = {
  readonly base: string;
  /** @throws CommandError with what the gateway said, or that there is none */
  readonly get: <Answer>(path: string, parameters?: Parameters) => Promise<Answer>;
};

/** A list as the gateway gives it. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPage?: string; readonly position: string };

type ErrorBody = { readonly error?: { readonly message?: string; readonly choices?: readonly string[] } };

export function apiAt(url = defaultUrl()): Api {
  const base = withoutSlash(url);
  return {
    base,
    get: async <Answer>(path: string, parameters: Parameters = {}) => {
      const response = await ask(`${base}${path}${queryOf(parameters)}`, base);
      const body: unknown = await response.json().catch(() => undefined);
      if (response.ok) return body as Answer;
      const { error } = (body ?? {}) as ErrorBody;
      if (error?.choices !== undefined)
        throw new CommandError(`which source? Say it with -s: ${choicesText(error.choices)}.`);
      // The sentence is made for whoever calls the API.
      const message = error?.message?.replace("GET /api/v1/sources lists", "`tapedeck status` lists");
      throw new CommandError(message ?? `${base} answered ${response.status}`);
    },
  };
}

/** Without the workspace, as people name them. */
function choicesText(sources: readonly string[]): string {
  return sources.map((source) => source.split("/").slice(1).join("/")).join(", ");
}

async function ask(url: string, base: string): Promise<Response> {
  try {
    return await fetch(url);
  } catch {
    throw nobodyAt(base);
  }
}

export function nobodyAt(base: string): CommandError {
  return new CommandError(
    `no Tapedeck answers at ${base}: start one with \`npm start\`, or say where it is with --url.`,
  );
}

/** This machine's, on the port that the settings here give it. */
export function defaultUrl(env: NodeJS.ProcessEnv = process.env): string {
  const path = env.TAPEDECK_CONFIG || "tapedeck.yaml";
  const read = settingsReader({ env, file: existsSync(path) ? loadSettingsFile(path) : undefined });
  return `http://127.0.0.1:${read.port("gateway.http.port", 7052)}`;
}

function queryOf(parameters: Parameters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
  }
  return query.size === 0 ? "" : `?${query}`;
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, "");
}
