import type { SettingsReader } from "./settings.ts";

/** Whose recordings people see who share a workspace. */
export const developerVisibilities = ["shown", "hidden", "hidden-from-admins"] as const;

/** shown: everybody sees everybody. hidden: only admins do. hidden-from-admins: nobody does. */
export type DeveloperVisibility = (typeof developerVisibilities)[number];

/** The setting that refusals name. */
export const developersSetting = "privacy.developers";

/** Of the gateway, and of query for SQL. */
export function developerVisibility(read: SettingsReader): DeveloperVisibility {
  return read.oneOf(developersSetting, developerVisibilities, "shown", {
    description:
      "`hidden`: everybody but admins sees only the recordings of the own developer, and the sums of the team. `hidden-from-admins`: admins too. It also concerns SQL, and needs `auth: tokens` ([privacy](privacy.md#hidden-developers)).",
  });
}
