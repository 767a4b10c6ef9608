import nodeModule from "node:module";
import { compileCache } from "./compile-cache.ts";

// Older Nodes, on which bundles run, have none.
nodeModule.enableCompileCache?.(compileCache);
// After the cache is there.
const { runProgram } = await import("./program.ts");
await runProgram();
