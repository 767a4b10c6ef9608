import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Installation, installation } from "@tapedeck/shared/installation";

/** How a user types this program's name: in the current folder, and anywhere. */
export type ProgramName = { readonly here: string; readonly anywhere: string };

/** "tapedeck" where that is on the path, else what works without it. */
export function programName(): ProgramName {
  const isOnPath = (process.env.PATH ?? "")
    .split(delimiter)
    .some((folder) => !folder.includes("node_modules") && existsSync(join(folder, "tapedeck")));
  return isOnPath ? { here: "tapedeck", anywhere: "tapedeck" } : names[installation]();
}

const same = (name: string): ProgramName => ({ here: name, anywhere: name });

const names: Readonly<Record<Installation, () => ProgramName>> = {
  /** npm links it in the checkout, where npx finds it, and puts that on the path while it runs us. */
  checkout: () => {
    const checkout = fileURLToPath(new URL("../../../", import.meta.url));
    const anywhere = join(checkout, "node_modules", ".bin", "tapedeck");
    return { here: `${process.cwd()}/`.startsWith(checkout) ? "npx tapedeck" : anywhere, anywhere };
  },
  package: () => same(process.argv[1] ?? "tapedeck"),
  executable: () => same(process.execPath),
};
