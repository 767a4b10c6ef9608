// `npm run docs:build`: docs/ as a site, in dist/ beside this file. A link to a page that is not there ends the build.
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "vitepress";
import { builtFolder, stage } from "./stage.mjs";

const dist = join(import.meta.dirname, "dist");

stage();
await build(import.meta.dirname);
// Another command may read the last one until this one is whole.
rmSync(dist, { recursive: true, force: true });
renameSync(builtFolder, dist);
