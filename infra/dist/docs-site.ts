import { existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./places.ts";
import { type Bom, joined, npmBom } from "./sbom.ts";
import { aboutPackage, installedFolder, type ThirdParty } from "./third-party.ts";

const site = join(root, "infra/docs-site");

/** What VitePress puts into the scripts of a site. */
const inScripts = [
  ...["vitepress", "vue", "@vue/reactivity", "@vue/runtime-core", "@vue/runtime-dom", "@vue/shared"],
  ...["@vueuse/core", "@vueuse/integrations", "@vueuse/shared", "focus-trap", "mark.js", "minisearch", "tabbable"],
];

/** Copies the built manual to a folder. @returns the packages whose code is in it */
export async function copyDocs(to: string, built: string = join(site, "dist")): Promise<readonly ThirdParty[]> {
  if (!existsSync(join(built, "index.html"))) {
    throw new Error("the manual is not built: run `npm run docs:build`, which `npm run dist` does by itself");
  }
  await cp(built, to, { recursive: true });
  return inScripts.map((name) => aboutPackage(installedFolder(site, name)));
}

/** npm's bill of the checkout, with what the manual was built with. */
export async function bomWithDocs(): Promise<Bom> {
  const all = await npmBom();
  return { ...all, ...joined(all, await npmBom(site)) };
}
