import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "rolldown";
import { root } from "./places.ts";
import { type ServerPart, serverParts } from "./server-parts.ts";

const cliSources = join(root, "packages/cli/src");

/** Puts the compiled descriptors into the bundle instead of what reads them. */
export function embeddedDescriptors(): Plugin {
  return {
    name: "embedded-descriptors",
    async load(id) {
      if (!id.endsWith("/shared/src/descriptors/descriptor-bytes.ts")) return null;
      const file = fileURLToPath(import.meta.resolve("@tapedeck/proto/descriptors.binpb"));
      const text = (await readFile(file)).toString("base64");
      return `export const descriptorBytes = () => Buffer.from(${JSON.stringify(text)}, "base64");`;
    },
  };
}

/** Puts calls of the package of the servers into the CLI instead of what it has there. */
export function partsOfServer(): Plugin {
  const parts = new Map(serverParts.map((part) => [join(cliSources, part.module), part]));
  return {
    name: "parts-of-server",
    load(id) {
      const part = parts.get(id);
      return part === undefined ? null : { code: callsOf(part), moduleType: "js" };
    },
  };
}

function callsOf({ name, functions }: ServerPart): string {
  const calls = functions.map(
    (each) => `export const ${each} = async (...given) => (await fromServerPackage("${name}")).${each}(...given);`,
  );
  const from = join(cliSources, "server-package.ts");
  return [`import { fromServerPackage } from ${JSON.stringify(from)};`, ...calls].join("\n");
}

const lateChrono = 'createRequire(import.meta.url)("chrono-node/en")';

/**
 * Chrono is loaded lazily, when a time is given in words. A bundler cannot follow that, so it becomes a separate file,
 * or a part of the only file.
 */
export function chronoFrom(code: string): Plugin {
  return {
    name: "chrono",
    async load(id) {
      if (id !== join(cliSources, "commands/time.ts")) return null;
      const text = await readFile(id, "utf8");
      if (text.split(lateChrono).length !== 2)
        throw new Error(`${id} does not read Chrono as it did: change chronoFrom`);
      return { code: text.replace(lateChrono, code), moduleType: "ts" };
    },
  };
}

const entryMark = "program:";

/** The entry of a program: what an older Node lacks comes first, unless only the version is asked for. */
export function programs(): Plugin {
  const olderNode = join(import.meta.dirname, "programs", "older-node.ts");
  return {
    name: "programs",
    resolveId: (id) => (id.startsWith(entryMark) ? `\0${id}` : null),
    load(id) {
      if (!id.startsWith(`\0${entryMark}`)) return null;
      const main = JSON.stringify(id.slice(entryMark.length + 1));
      return [
        "#!/usr/bin/env node",
        `const isLacking = globalThis.AsyncDisposableStack === undefined && process.argv[2] !== "--version";`,
        // CommonJS can't wait at its top level.
        `(isLacking ? import(${JSON.stringify(olderNode)}) : Promise.resolve()).then(() => import(${main}));`,
      ].join("\n");
    },
  };
}

/** The entry of the program that is this module: a specifier or a path. */
export const programEntry = (main: string): string => `${entryMark}${main}`;
