import tab from "@bomb.sh/tab";
import describe from "@bomb.sh/tab/commander";
import { isNamePart } from "@tapedeck/shared/source";
import { abortable } from "@tapedeck/shared/sync/abortable";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { Command } from "commander";
import { apiAt, type Page } from "../../api/api.ts";

export type Shell = "bash" | "zsh" | "fish";

/** Longer would be felt at the keyboard. */
const timeoutMs = 500;

export function writeCompletion(shell: Shell): void {
  tab.setup("tapedeck", "tapedeck", shell);
}

/** Answers the shell's question, `complete -- <words>`: which words may stand at the end of them. */
export async function completeWords(program: Command, words: readonly string[]): Promise<void> {
  const sources = completesSource(words) ? await sourceNames() : [];
  const root = describe(program, { completionCommandName: "completion" });
  for (const [name, command] of root.commands) {
    command.description = summaryOf(program, name) || firstLine(command.description);
    for (const each of command.options.values()) each.description = firstLine(each.description);
    const option = command.options.get("source");
    if (option === undefined) continue;
    option.handler = (complete) => {
      for (const source of sources) complete(source, "");
    };
  }
  root.parse([...words]);
}

/** One line: a shell takes each further one for another word, and bash also runs what stands there in backticks. */
function summaryOf(program: Command, name: string): string {
  const command = name
    .split(" ")
    .reduce<Command | undefined>((parent, word) => parent?.commands.find((one) => one.name() === word), program);
  return command?.summary() ?? "";
}

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}

/** Nobody waits for a Tapedeck where none of its words are wanted. */
function completesSource(words: readonly string[]): boolean {
  const [before = "", last = ""] = words.slice(-2);
  return ["-s", "--source"].includes(before) || last.startsWith("--source=");
}

async function sourceNames(): Promise<readonly string[]> {
  try {
    const pending = apiAt().get<Page<{ readonly source: string }>>("/api/v1/sources", { limit: 200 });
    const page = await abortable(pending, timeoutSignal(timeoutMs));
    const names = page.items
      .map(({ source }) => source.split("/").slice(1))
      // A server may answer anything, and a shell would run it.
      .filter((parts) => parts.every(isNamePart));
    const short = names.map(([developer, project]) => `${developer}/${project}`);
    // An ambiguous short name is replaced by the full one.
    return names.map((parts, at) =>
      short.filter((name) => name === short[at]).length > 1 ? parts.join("/") : (short[at] ?? ""),
    );
  } catch {
    return [];
  }
}
