import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError } from "../command-error.ts";

/** A Tapedeck that `tapedeck login` has kept. */
export type Context = {
  /** "https://tapedeck.example:7052" */
  readonly url: string;
  /** gRPC port of the same gateway. */
  readonly grpcPort?: number;
  readonly token?: string;
  /** Path of a PEM file with the authorities that are trusted there. */
  readonly ca?: string;
};

export type Contexts = {
  /** Absent: the Tapedeck of this machine. */
  readonly current?: string;
  readonly contexts: Readonly<Record<string, Context>>;
};

type Env = Readonly<Record<string, string | undefined>>;

/** The Tapedeck of this machine, which needs no login. */
export const localContext = "local";

export function contextsPath(env: Env): string {
  return join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "tapedeck", "contexts.json");
}

/**
 * What `tapedeck login` has kept; nothing where it never was called.
 * @throws CommandError when the file can't be read or is not ours
 */
export function readContexts(env: Env): Contexts {
  const path = contextsPath(env);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return { contexts: {} };
    throw new CommandError(`${path} can't be read (${code ?? "unknown"}): change its owner, or remove it.`);
  }
  const read = jsonIn(text);
  if (!areContexts(read))
    throw new CommandError(`${path} is not a valid file of contexts: remove it, and log in again.`);
  return read;
}

/** Written whole or not at all, readable by its owner only: it contains tokens. */
export function writeContexts(env: Env, changed: Contexts): void {
  const path = contextsPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const part = `${path}.${randomUUID()}`;
  writeFileSync(part, `${JSON.stringify(changed, undefined, 2)}\n`, { mode: 0o600, flag: "wx" });
  renameSync(part, path);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** By hand: every command reads the file, and to load a library of schemas takes longer than many a command. */
function areContexts(value: unknown): value is Contexts {
  if (!isRecord(value)) return false;
  const { current, contexts } = value;
  return isTextOrAbsent(current) && isRecord(contexts) && Object.values(contexts).every(isContext);
}

function isContext(value: unknown): value is Context {
  if (!isRecord(value)) return false;
  const { url, grpcPort: port, token, ca } = value;
  const isPort = port === undefined || (Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535);
  return typeof url === "string" && isPort && isTextOrAbsent(token) && isTextOrAbsent(ca);
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
