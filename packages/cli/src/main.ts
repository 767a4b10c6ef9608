import { enableCompileCache } from "node:module";
import { compileCache } from "./compile-cache.ts";

enableCompileCache(compileCache);
// After the cache is there.
await import("./program.ts");
