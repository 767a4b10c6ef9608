import nodeModule from "node:module";
import { version } from "@tapedeck/shared/version";
import { compileCache } from "./compile-cache.ts";
import { print } from "./display/output.ts";
import { handleLostOutput } from "./lost-output.ts";

// Scripts and installers ask for the version to see whether it starts. No command is needed for that.
if (process.argv.length === 3 && ["--version", "version"].includes(process.argv[2] ?? "")) {
  handleLostOutput();
  print(version);
} else {
  // Older Nodes, on which bundles run, have none.
  nodeModule.enableCompileCache?.(compileCache);
  // After the cache is there. A CommonJS bundle can't wait at its top level.
  void import("./program.ts").then(({ runProgram }) => runProgram());
}
