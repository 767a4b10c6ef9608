import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { shellWord } from "./output/shell-word.ts";

/** checkout: runs from the sources. package: bundled, and installed by npm. executable: one file with Node in it. */
export type Installation = "checkout" | "package" | "executable";

declare const TAPEDECK_INSTALLATION: Installation | undefined;

/** How this program was installed: `npm run dist` puts it into what it builds. */
export const installation: Installation =
  typeof TAPEDECK_INSTALLATION === "undefined" ? "checkout" : TAPEDECK_INSTALLATION;

/** The command by which a user starts the servers of this machine, with these flags of `tapedeck up`. */
export function commandToStart(...flags: readonly string[]): string {
  if (installation !== "checkout") return ["tapedeck up", ...flags].join(" ");
  const checkout = resolve(fileURLToPath(new URL("../../..", import.meta.url)));
  // In another folder npm would start something else.
  const start = process.cwd() === checkout ? "npm start" : `npm --prefix ${shellWord(checkout)} start`;
  return flags.length === 0 ? start : [start, "--", ...flags].join(" ");
}

/** The user's folder for what can be fetched or compiled again. An installed program may not write beside itself. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  const cache = env.XDG_CACHE_HOME;
  return join(cache === undefined || cache === "" ? join(homedir(), ".cache") : cache, "tapedeck");
}
