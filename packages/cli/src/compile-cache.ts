import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, installation } from "@tapedeck/shared/installation";

/** Node's cache of compiled sources, which halves the start-up time of a command. */
export const compileCache =
  installation === "checkout"
    ? fileURLToPath(new URL("../../../node_modules/.cache/tapedeck", import.meta.url))
    : join(cacheFolder(process.env), "compiled");
