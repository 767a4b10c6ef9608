// The CLI of a checkout. To load what removes the types from TypeScript takes Node 40 ms, and files in the cache of compiled sources do
// not need it. The cache must be there before the first such file, so this one is JavaScript.
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

enableCompileCache(fileURLToPath(new URL("../../../node_modules/.cache/tapedeck", import.meta.url)));
await import("../src/main.ts");
