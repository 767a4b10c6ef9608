import type { Command, Option } from "commander";
import { type EnvironmentVariable, environmentVariables } from "../environment-variables.ts";
import { code, table } from "./table.ts";

/** All commands, and those inside of them. */
function commandsWithin(commands: readonly Command[]): readonly Command[] {
  return commands.flatMap((command) => [command, ...commandsWithin(command.commands)]);
}

/** @throws Error for a variable that a command reads and `environmentVariables` lacks, and for one without a default */
export function variablesTable(commands: readonly Command[]): string {
  const options = optionsByVariable(commands);
  const known = new Set(environmentVariables.map(({ name }) => name));
  const undescribed = [...options.keys()].filter((name) => !known.has(name));
  if (undescribed.length > 0) throw new Error(`variables without a description: ${undescribed.join(", ")}`);
  const rows = environmentVariables.map((variable) => {
    const own = options.get(variable.name) ?? [];
    const flags = new Set(own.flatMap(({ long }) => (long ? [code(long)] : [])));
    return [code(variable.name), [...flags].join(", "), variableDefault(variable, own), variable.description];
  });
  return table(["variable", "flag", "default", "what it does"], rows);
}

function variableDefault({ name, otherwise }: EnvironmentVariable, options: readonly Option[]): string {
  const defaults = options.flatMap(({ defaultValue }) =>
    defaultValue === undefined ? [] : [code(String(defaultValue))],
  );
  const all = new Set(otherwise === undefined ? defaults : [otherwise, ...defaults]);
  const [only] = all;
  if (only === undefined || all.size > 1) throw new Error(`${name}: ${all.size} defaults, expected one`);
  return only;
}

function optionsByVariable(commands: readonly Command[]): ReadonlyMap<string, readonly Option[]> {
  const options = commandsWithin(commands).flatMap(({ options }) => options);
  const read = options.filter(({ envVar }) => envVar !== undefined);
  return Map.groupBy(read, ({ envVar = "" }) => envVar);
}
