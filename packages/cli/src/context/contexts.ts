import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { CommandError } from "../command-error.ts";

const context = z.object({
  /** "https://tapedeck.example:7052" */
  url: z.string(),
  /** gRPC port of the same gateway. */
  grpcPort: z.int().min(1).max(65_535).optional(),
  token: z.string().optional(),
  /** Path of a PEM file with the authorities that are trusted there. */
  ca: z.string().optional(),
});

const contexts = z.object({
  /** Absent: the Tapedeck of this machine. */
  current: z.string().optional(),
  contexts: z.record(z.string(), context),
});

/** A Tapedeck that `tapedeck login` has kept. */
export type Context = z.infer<typeof context>;
export type Contexts = z.infer<typeof contexts>;

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
  const read = contexts.safeParse(jsonIn(text));
  if (!read.success) throw new CommandError(`${path} is not a valid file of contexts: remove it, and log in again.`);
  return read.data;
}

/** Whole or not at all, and for nobody else to read: tokens are in it. */
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
