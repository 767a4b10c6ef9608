import type { Command, Option } from "commander";
import { allCommands } from "../commands/all.ts";
import { environmentVariables } from "../environment-variables.ts";
import { code, table } from "./table.ts";

/** All commands, and those inside of them, with their full name: "sql-role create". */
function commandsWithin(commands: readonly Command[], before = ""): readonly (readonly [string, Command])[] {
  return commands.flatMap((command) => {
    const name = `${before}${command.name()}`;
    return [[name, command] as const, ...commandsWithin(command.commands, `${name} `)];
  });
}

/** @throws Error for a variable that a command reads and `environmentVariables` lacks */
export function variablesTable(): string {
  const flags = flagsOfVariables();
  const known = new Set(environmentVariables.map(({ name }) => name));
  const undescribed = [...flags.keys()].filter((name) => !known.has(name));
  if (undescribed.length > 0) throw new Error(`variables without a description: ${undescribed.join(", ")}`);
  const rows = environmentVariables.map(({ name, otherwise, description }) => {
    const own = [...(flags.get(name) ?? [])].map(code).join(", ");
    return [code(name), own, otherwise, description];
  });
  return table(["variable", "flag", "default", "what it does"], rows);
}

function flagsOfVariables(): ReadonlyMap<string, ReadonlySet<string>> {
  const options = commandsWithin(allCommands()).flatMap(([, command]) => command.options);
  const read = options.flatMap(({ envVar, long }) => (envVar && long ? [[envVar, long] as const] : []));
  return new Map([...Map.groupBy(read, ([name]) => name)].map(([name, all]) => [name, new Set(all.map(([, l]) => l))]));
}

/** The flags of `tapedeck up`. */
export function upFlagsTable(): string {
  const up = allCommands().find((command) => command.name() === "up");
  const rows = (up?.options ?? [])
    .filter(({ hidden }) => !hidden)
    .map((option) => [code(option.flags), flagText(option)]);
  return table(["flag", "what it does"], rows);
}

function flagText({ description, envVar, defaultValue }: Option): string {
  const more = [
    ...(defaultValue === undefined ? [] : [`default: ${code(String(defaultValue))}`]),
    ...(envVar === undefined ? [] : [code(envVar)]),
  ];
  return more.length === 0 ? description : `${description} (${more.join("; ")})`;
}
