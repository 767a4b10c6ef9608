import { isDeepStrictEqual } from "node:util";
import { gatewaySettings } from "@tapedeck/gateway/for-cli/settings";
import { ingestSettings } from "@tapedeck/ingest/for-cli/settings";
import { querySettings } from "@tapedeck/query/for-cli/settings";
import type { SettingDefinition } from "@tapedeck/shared/service/setting-definition";
import { type SettingsReader, settingsReader } from "@tapedeck/shared/service/settings";
import { ownSettings } from "../local-server/settings.ts";

const readers = {
  gateway: gatewaySettings,
  query: querySettings,
  ingest: ingestSettings,
  "tapedeck up": ownSettings,
} satisfies Readonly<Record<string, (read: SettingsReader) => unknown>>;

export type SettingsProgram = keyof typeof readers;

export type ReadSetting = SettingDefinition & {
  readonly description: string;
  readonly readBy: readonly SettingsProgram[];
};

/**
 * Every setting of tapedeck.yaml once, with its readers.
 * @throws Error for settings without a description, or with two different definitions
 */
export function allSettings(): readonly ReadSetting[] {
  const reads = (Object.keys(readers) as SettingsProgram[]).flatMap((reader) => definitionsOf(readers[reader], reader));
  return mergedSettings(reads);
}

type DefinitionOfProgram = SettingDefinition & { readonly reader: SettingsProgram };

function definitionsOf(
  settings: (read: SettingsReader) => unknown,
  reader: SettingsProgram,
): readonly DefinitionOfProgram[] {
  const read = settingsReader({ env: {} });
  settings(read);
  return read.definitions().map((definition) => ({ ...definition, reader }));
}

/** The read that describes a setting defines it; a read without words only asks whether it is set. */
export function mergedSettings(reads: readonly DefinitionOfProgram[]): readonly ReadSetting[] {
  const byKey = [...Map.groupBy(reads, ({ key }) => key)];
  const undescribed = byKey.filter(([, same]) => same.every(({ description = "" }) => description === ""));
  if (undescribed.length > 0) {
    throw new Error(`settings without a description: ${undescribed.map(([key]) => key).join(", ")}`);
  }
  return byKey.map(([key, same]) => {
    const described = same.filter(
      (read): read is DefinitionOfProgram & { description: string } => read.description !== undefined,
    );
    const [first] = described;
    if (first === undefined) throw new Error(`${key}: without a description`);
    for (const other of described) assertSame(first, other);
    const { reader: _, ...definition } = first;
    // `up` reads everything for the services; settings that it only passes on are not its own.
    return { ...definition, readBy: [...new Set(described.map(({ reader }) => reader))] };
  });
}

function assertSame(
  { reader: one, ...first }: DefinitionOfProgram,
  { reader: other, ...second }: DefinitionOfProgram,
): void {
  if (isDeepStrictEqual(first, second)) return;
  throw new Error(`${first.key}: ${one} and ${other} define it differently`);
}
