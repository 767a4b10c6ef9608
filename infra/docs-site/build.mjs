// `npm run docs:build`: docs/ as a site, in dist/ beside this file. A link to a page that is not there ends the build.
import { fileURLToPath } from "node:url";
import { build } from "vitepress";
import { stage } from "./stage.mjs";

stage();
await build(fileURLToPath(new URL(".", import.meta.url)));
