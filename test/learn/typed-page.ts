import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A tutorial of docs/learn, as tests type it. */
export type TypedPage = {
  /** The lines of its blocks of commands, in their order. */
  readonly commands: readonly string[];
  /** Its block of YAML. */
  readonly settings: string;
};

export function typedPage(name: string): TypedPage {
  const text = readFileSync(join(import.meta.dirname, "../../docs/learn", name), "utf8");
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```/gms)];
  const of = (language: string) => blocks.flatMap(([, found, block = ""]) => (found === language ? [block] : []));
  return { commands: of("").flatMap((block) => block.trim().split("\n")), settings: of("yaml").join("\n") };
}
