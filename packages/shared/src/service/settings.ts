import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { issueText } from "../errors/schema-error.ts";
import { ownValue } from "../own-value.ts";
import { durationForm, durationMs } from "./duration.ts";
import type { SettingAbout, SettingDefinition } from "./setting-definition.ts";

/** All problems of a configuration: the source, the key, and what was expected. */
export class SettingsError extends Error {
  override name = "SettingsError";
  readonly errors: readonly string[];

  constructor(errors: readonly string[]) {
    super(`${errors.length === 1 ? "a setting is" : `${errors.length} settings are`} wrong:\n  ${errors.join("\n  ")}`);
    this.errors = errors;
  }
}

/** A parsed tapedeck.yaml. */
export type SettingsFile = { readonly path: string; readonly values: Readonly<Record<string, unknown>> };

/** @throws SettingsError with line and column if the file is not a YAML mapping */
export function loadSettingsFile(path: string): SettingsFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new SettingsError([`${path}: can't be read (${cause instanceof Error ? cause.message : String(cause)})`]);
  }
  return parseSettings(path, text);
}

/** Reads the text of a tapedeck.yaml. `path` is for messages. */
export function parseSettings(path: string, text: string): SettingsFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new SettingsError(
      document.errors.map(({ message, pos }) => {
        const { line, col } = lines.linePos(pos[0]);
        return `${path}:${line}:${col}: ${message}`;
      }),
    );
  }
  const values: unknown = document.toJS() ?? {};
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new SettingsError([`${path}: expected a mapping such as "gateway:\\n  http:\\n    port: 7052"`]);
  }
  return { path, values: values as Record<string, unknown> };
}

/** Where settings come from. The environment takes precedence over the file. */
export type SettingsSources = { readonly env: NodeJS.ProcessEnv; readonly file?: SettingsFile | undefined };

/** The environment, and the file that TAPEDECK_CONFIG names, if any. */
export function settingsSources(env: NodeJS.ProcessEnv): SettingsSources {
  const path = env.TAPEDECK_CONFIG;
  return { env, file: path === undefined || path === "" ? undefined : loadSettingsFile(path) };
}

type Range = { readonly min?: number; readonly max?: number };

/**
 * Reads settings by key, "gateway.grpc.port": from TAPEDECK_GATEWAY_GRPC_PORT, else from that path in tapedeck.yaml,
 * else the default. Problems are collected, and `assertValid` throws them all at once. Until then a setting that is
 * wrong reads as its default.
 */
export class SettingsReader {
  readonly #env: NodeJS.ProcessEnv;
  readonly #file: SettingsFile | undefined;
  readonly #errors: string[] = [];
  readonly #definitions: SettingDefinition[] = [];

  constructor({ env, file }: SettingsSources) {
    this.#env = env;
    this.#file = file;
  }

  string<D>(key: string, fallback: D, about: SettingAbout = {}): string | D {
    return this.#read({ key, form: "text", fallback, ...about }, "text", (value) =>
      isScalar(value) ? String(value) : undefined,
    );
  }

  integer<D>(
    key: string,
    fallback: D,
    { min = 0, max = Number.MAX_SAFE_INTEGER, ...about }: Range & SettingAbout = {},
  ): number | D {
    const definition = { key, form: "integer", fallback, min, max, ...about } as const;
    return this.#read(definition, `a whole number from ${min} to ${max}`, (value) => {
      const number = toNumber(value);
      return number !== undefined && Number.isInteger(number) && number >= min && number <= max ? number : undefined;
    });
  }

  /** 0 means any free port. */
  port<D>(key: string, fallback: D, about: SettingAbout = {}): number | D {
    return this.integer(key, fallback, { unit: "port", max: 65_535, ...about });
  }

  boolean<D>(key: string, fallback: D, about: SettingAbout = {}): boolean | D {
    return this.#read({ key, form: "boolean", fallback, ...about }, "true or false", (value) =>
      booleans.get(String(value).toLowerCase()),
    );
  }

  /** Milliseconds, from "500ms", "30s", "10m", "2h" or "30d"; `min` in milliseconds. */
  duration<D>(
    key: string,
    fallback: D,
    { min = 0, ...about }: { readonly min?: number } & SettingAbout = {},
  ): number | D {
    const expected = min === 0 ? durationForm : `${durationForm}, of at least ${min}ms`;
    return this.#read({ key, form: "duration", fallback, min, ...about }, expected, (value) => {
      const ms = durationMs(value);
      return ms !== undefined && ms >= min ? ms : undefined;
    });
  }

  /** From a YAML list; from the environment text with commas, or JSON. */
  list(key: string, fallback: readonly string[], about: SettingAbout = {}): readonly string[] {
    return this.#read({ key, form: "list", fallback, ...about }, "a list of texts", toTexts);
  }

  oneOf<T extends string, D>(key: string, choices: readonly T[], fallback: D, about: SettingAbout = {}): T | D {
    const definition = { key, form: "choice", fallback, choices, ...about } as const;
    return this.#read(definition, `one of ${choices.join(", ")}`, (value) =>
      choices.find((choice) => choice === String(value)),
    );
  }

  /** A value of any shape, by a schema; from the environment it is JSON. Each issue is a problem of its own. */
  custom<T, D>(key: string, schema: z.ZodType<T>, fallback: D, about: SettingAbout = {}): T | D {
    this.#definitions.push({ key, form: "custom", fallback, schema, ...about });
    const found = this.#find(key);
    if (found === undefined) return fallback;
    const parsed = schema.safeParse(typeof found.value === "string" ? fromJson(found.value) : found.value, {
      error: issueText,
    });
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) {
      this.addError(`${found.where}${issue.path.map((key) => `.${String(key)}`).join("")}: ${issue.message}`);
    }
    return fallback;
  }

  /** Adds a problem that the form of one setting does not show. */
  addError(text: string): void {
    this.#errors.push(text);
  }

  knownKeys(): ReadonlySet<string> {
    return new Set(this.#definitions.map(({ key }) => key));
  }

  /** Every read so far, for the page of the settings; a key that was read twice occurs twice. */
  definitions(): readonly SettingDefinition[] {
    return this.#definitions;
  }

  /**
   * Throws SettingsError if there was any problem. With `complete`, every key of the product has been read by now, and
   * unknown keys of the file are problems too.
   */
  assertValid({ complete = false, alsoKnown = [] as Iterable<string> } = {}): void {
    const file = this.#file;
    const all = new Set([...this.knownKeys(), ...alsoKnown]);
    const unknown =
      complete && file !== undefined ? unknownKeys(file.values, all).map((key) => unknownKey(file, key, all)) : [];
    // A problem of a setting that several services read is reported once.
    const reported = new Set([...this.#errors, ...unknown]);
    if (reported.size > 0) throw new SettingsError([...reported]);
  }

  /** `parse` returns undefined for a value that it can't take. */
  #read<T, D>(
    definition: SettingDefinition & { readonly fallback: D },
    expected: string,
    parse: (value: unknown) => T | undefined,
  ): T | D {
    this.#definitions.push(definition);
    const { key, fallback } = definition;
    const found = this.#find(key);
    if (found === undefined) return fallback;
    const value = parse(found.value);
    if (value !== undefined) return value;
    this.addError(`${found.where}: ${JSON.stringify(found.value)} is not ${expected}`);
    return fallback;
  }

  #find(key: string): { readonly value: unknown; readonly where: string } | undefined {
    const name = envName(key);
    const fromEnv = ownValue(this.#env, name);
    if (fromEnv !== undefined && fromEnv !== "") return { value: fromEnv, where: name };
    if (this.#file === undefined) return undefined;
    const value = valueAt(this.#file.values, key);
    return value === undefined || value === null ? undefined : { value, where: `${this.#file.path}: ${key}` };
  }
}

/** A reader of settings, which collects all problems before it throws. */
export function settingsReader(sources: SettingsSources): SettingsReader {
  return new SettingsReader(sources);
}

/** The environment variable of a setting: `TAPEDECK_…`. */
export function envName(key: string): string {
  return `TAPEDECK_${key
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .replace(/[.-]/g, "_")
    .toUpperCase()}`;
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["on", true],
  ["yes", true],
  ["false", false],
  ["0", false],
  ["off", false],
  ["no", false],
]);

function valueAt(values: Readonly<Record<string, unknown>>, key: string): unknown {
  return key.split(".").reduce<unknown>((at, step) => (isMapping(at) ? ownValue(at, step) : undefined), values);
}

function unknownKeys(values: Readonly<Record<string, unknown>>, known: ReadonlySet<string>, prefix = ""): string[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const key = `${prefix}${name}`;
    if (known.has(key)) return [];
    const hasInner = [...known].some((other) => other.startsWith(`${key}.`));
    if (hasInner && isMapping(value)) return unknownKeys(value, known, `${key}.`);
    return hasInner && isDeepStrictEqual(value, null) ? [] : [key];
  });
}

function unknownKey({ path }: SettingsFile, key: string, known: ReadonlySet<string>): string {
  const parent = key.includes(".") ? key.slice(0, key.lastIndexOf(".") + 1) : "";
  const siblings = new Set(
    [...known].filter((k) => k.startsWith(parent)).map((k) => k.slice(parent.length).split(".")[0]),
  );
  return `${path}: ${key}: unknown; ${parent === "" ? "the file" : parent.slice(0, -1)} has ${[...siblings].sort().join(", ")}`;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^\d+$/.test(value) ? Number(value) : undefined;
}

function toTexts(input: unknown): readonly string[] | undefined {
  const json = typeof input === "string" ? fromJson(input) : undefined;
  // A host may begin like JSON, too: [fd00::1].
  const value = Array.isArray(json) ? json : input;
  if (typeof value === "string") {
    return value
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }
  return Array.isArray(value) && value.every(isScalar) ? value.map(String) : undefined;
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
