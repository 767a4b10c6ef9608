import type { Help } from "commander";
import { outputColumns, print } from "../display/output.ts";
import { kindsByNoun } from "../reference/kinds-page.ts";

/** `tapedeck help kinds`: the kinds of events that `--kind`, `--for` and `--or-fail` take. */
export function printKinds(help: Help): void {
  help.prepareContext({ helpWidth: outputColumns() ?? 80 });
  const all = kindsByNoun();
  const width = Math.max(...all.map(({ noun }) => noun.length));
  print("Kinds of events: <noun>.<verb>, such as build.failed; also <noun>.* and *.<verb>.\n");
  for (const { noun, verbs, about } of all)
    print(help.formatItem(noun, width, `${verbs.join(", ")}\n${about.replaceAll("`", "")}`, help));
}
