import type { z } from "zod";

/** The text of docs/settings.md about a setting, beyond its form. Markdown, in one line. */
export type SettingAbout = {
  /** The setting's effect. One of its reads has to have it; where several services read it, only one does. */
  readonly description?: string;
  /** The unit of a number. */
  readonly unit?: "bytes" | "port";
  /** In place of the default in code, where that depends on the machine or stands for something else. */
  readonly defaultText?: string;
  /** The effect of exceeding the limit; for limits only. */
  readonly past?: string;
};

/** A setting as the code that reads it knows it. */
export type SettingDefinition = SettingAbout & {
  readonly key: string;
  readonly form: "text" | "integer" | "boolean" | "duration" | "list" | "choice" | "custom";
  readonly fallback: unknown;
  /** The range of an integer, or of a duration in ms. */
  readonly min?: number;
  readonly max?: number;
  readonly choices?: readonly string[];
  /** The schema of a `custom` setting; its `meta` describes what is inside. */
  readonly schema?: z.ZodType;
};
