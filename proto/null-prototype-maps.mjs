// Gives the maps of the generated messages no prototype: their keys come from outside, and in an object with one,
// `map["__proto__"] = value` is no entry, and `map["constructor"]` is there without one. ts-proto has no option for it.
import { globSync, readFileSync, writeFileSync } from "node:fs";

for (const file of globSync("gen/**/*.ts", { cwd: import.meta.dirname })) {
  const path = new URL(file, import.meta.url);
  const code = readFileSync(path, "utf8");
  const empty = "Object.create(null)";
  writeFileSync(
    path,
    code
      .replaceAll(/(?<!_unknownFields)(: |obj\.\w+ = )\{\}/g, `$1${empty}`)
      .replaceAll(/^(\s+)\{\},$/gm, `$1${empty},`),
  );
}
