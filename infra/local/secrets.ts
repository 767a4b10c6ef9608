import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, open, readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { LocalServerError } from "./local-server-error.ts";

/** The secrets that the processes of one machine share. */
export type Secrets = {
  readonly natsPassword: string;
  readonly postgresPassword: string;
  /** Shown by the services to each other; 256 bits. */
  readonly servicesKey: string;
};

const names = ["natsPassword", "postgresPassword", "servicesKey"] as const satisfies readonly (keyof Secrets)[];

/**
 * The secrets in a file (`.tapedeck/secrets`, mode 0600), made at the first call. If several processes come first at
 * once, one makes them and all get the same.
 */
export async function loadSecrets(file: string): Promise<Secrets> {
  const found = await read(file);
  if (found) return found;
  await create(file);
  const made = await read(file);
  if (made) return made;
  throw unusable(file, "it disappeared");
}

async function read(file: string): Promise<Secrets | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unusable(file, (error as Error).message);
  }
  const secrets = parse(text);
  const missing = names.find((name) => typeof secrets[name] !== "string" || secrets[name] === "");
  if (missing !== undefined) throw unusable(file, `it lacks ${missing}`);
  await chmod(file, 0o600);
  return secrets as Secrets;
}

function parse(text: string): Partial<Record<keyof Secrets, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** The file appears complete: link() fails if another process was faster, whose file then counts. */
async function create(file: string): Promise<void> {
  const fresh = Object.fromEntries(names.map((name) => [name, randomBytes(32).toString("base64url")]));
  const half = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await mkdir(dirname(file), { recursive: true });
    const handle = await open(half, "wx", 0o600);
    await handle.writeFile(`${JSON.stringify(fresh, null, 2)}\n`);
    await handle.sync();
    await handle.close();
    await link(half, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw unusable(file, (error as Error).message);
  } finally {
    await rm(half, { force: true });
  }
}

function unusable(file: string, why: string): LocalServerError {
  return new LocalServerError(
    `${file} can't be used (${why}): delete it, and new secrets are created at the next start.`,
  );
}
