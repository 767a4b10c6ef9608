import { isBuiltin } from "node:module";
import type { Installation } from "@tapedeck/shared/installation";
import { type ModuleFormat, type Plugin, rolldown } from "rolldown";

export type Bundle = {
  readonly folder: string;
  /** Entries by the name of their file. */
  readonly input: Readonly<Record<string, string>>;
  readonly installation: Installation;
  readonly plugins: readonly Plugin[];
  /** CommonJS starts sooner and takes less memory than ES modules, which import each of Node's own modules whole. */
  readonly format?: ModuleFormat;
  /** All is in the file of the entry. Default: what is loaded later, or by several, has files of its own. */
  readonly isOneFile?: boolean;
  /** Packages of others stay outside, as dependencies. Default: all is in the bundle. */
  readonly ownCodeOnly?: boolean;
};

export type Bundled = {
  /** Every module that is in the bundle, by its path. */
  readonly modules: readonly string[];
  /** Names of the packages that stay outside. */
  readonly packages: readonly string[];
};

/** The oldest Node whose syntax the bundles keep to. */
const target = "node20";

/** Bundles programs for Node, in one folder without others, so that what a program reads lies beside each of its files. */
export async function bundle(options: Bundle) {
  const { folder, input, installation, plugins, format = "esm", isOneFile = false, ownCodeOnly = false } = options;
  // Runtime helpers for newer syntax (@oxc-project) and polyfills for older Nodes are not dependencies.
  const isOthers = (id: string) => isPackageName(id) && !/^(@tapedeck|tapedeck|@oxc-project|core-js)\//.test(id);
  const warnings: string[] = [];
  const build = await rolldown({
    input: { ...input },
    platform: "node",
    plugins: [...plugins],
    external: (id) => isBuiltin(id) || (ownCodeOnly && isOthers(id)),
    transform: { target, define: { TAPEDECK_INSTALLATION: JSON.stringify(installation) } },
    // Generated modules make a gRPC client beside their messages. Where only the messages are used, gRPC is not loaded.
    treeshake: {
      manualPureFunctions: ["makeGenericClientConstructor"],
      moduleSideEffects: [{ test: /\/@grpc\/grpc-js\//, sideEffects: false }],
    },
    checks: { pluginTimings: false, bundlerTimings: false },
    onLog: (level, log) => {
      if (level === "warn" && !isHarmless(log.message)) warnings.push(log.message);
    },
  });
  const ending = format === "cjs" ? "cjs" : "js";
  const { output } = await build.write({
    dir: folder,
    format,
    entryFileNames: `[name].${ending}`,
    chunkFileNames: `[name]-[hash].${ending}`,
    minify: true,
    ...(isOneFile && { codeSplitting: false }),
  });
  await build.close();
  if (warnings.length > 0) throw new Error(`the bundler warns:\n${warnings.join("\n")}`);
  const chunks = output.filter((part) => part.type === "chunk");
  const modules = [...new Set(chunks.flatMap(({ moduleIds }) => moduleIds))].filter((id) => id.startsWith("/"));
  const imported = chunks.flatMap(({ imports, dynamicImports }) => [...imports, ...dynamicImports]);
  const packages = [...new Set(imported.filter((id) => !isBuiltin(id) && isPackageName(id)).map(packageOf))];
  return { modules, packages: packages.filter((name) => !/\.c?js$/.test(name)).toSorted() } satisfies Bundled;
}

const isPackageName = (id: string): boolean => !/^[./\0]/.test(id) && !id.includes(":");

/** `@a/b` of `@a/b/c`. */
function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

/** Optional modules that libraries try to load, and their way of writing it. */
function isHarmless(message: string): boolean {
  return /bufferutil|utf-8-validate|pg-native|eval|CIRCULAR|circular/i.test(message);
}
