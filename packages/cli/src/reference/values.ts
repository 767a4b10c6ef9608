import type { SettingDefinition } from "@tapedeck/shared/service/setting-definition";
import { code } from "./table.ts";

const durationUnits = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** Uses the largest unit that gives a whole number, "24h" for a day. */
export function durationText(ms: number): string {
  const [unit, size] = durationUnits.find(([name, size]) => name !== "d" && ms >= size && ms % size === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

/** "4194304 (4 MiB)" */
function bytesText(bytes: number): string {
  const [unit, size] = (
    [
      ["GiB", 1024 ** 3],
      ["MiB", 1024 ** 2],
      ["KiB", 1024],
    ] as const
  ).find(([, size]) => bytes >= size && bytes % size === 0) ?? ["bytes", 1];
  return size === 1 ? code(String(bytes)) : `${code(String(bytes))} (${bytes / size} ${unit})`;
}

/** The default. */
export function defaultText({ form, unit, fallback, defaultText }: SettingDefinition): string {
  if (defaultText !== undefined) return defaultText;
  const isNothing = fallback === undefined || fallback === "" || (Array.isArray(fallback) && fallback.length === 0);
  if (isNothing) return "none";
  if (typeof fallback === "number" && form === "duration") return code(durationText(fallback));
  if (typeof fallback === "number" && unit === "bytes") return bytesText(fallback);
  return code(Array.isArray(fallback) ? fallback.join(", ") : String(fallback));
}

/** The allowed values: kind, unit and range. */
export function formText(definition: SettingDefinition): string {
  const { key, form, choices = [] } = definition;
  switch (form) {
    case "integer":
      return numberText(definition);
    case "boolean":
      return "`true`, `false`";
    case "duration":
      return definition.min ? `duration ≥ ${durationText(definition.min)}` : "duration";
    case "list":
      return "list of texts";
    case "choice":
      return choices.map(code).join(", ");
    case "custom":
      return `list, see [${key}](#${key.replaceAll(".", "").toLowerCase()})`;
    case "text":
      return "text";
  }
}

function numberText({ unit, min = 0, max = Number.MAX_SAFE_INTEGER }: SettingDefinition): string {
  if (unit === "port") return "port";
  const range = max === Number.MAX_SAFE_INTEGER ? `≥ ${min}` : `${min} to ${max}`;
  return unit === undefined ? range : `${unit} ${range}`;
}
