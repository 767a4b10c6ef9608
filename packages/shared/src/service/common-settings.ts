import { namePart } from "../source.ts";
import type { SettingsReader } from "./settings.ts";

/** The first part of the name of every source here, as it may be written there. */
export function workspaceSetting(read: SettingsReader): string {
  return namePart(
    read.string("workspace", "default", {
      description:
        "The first part of every source's name. Callers without a token are in this workspace. What was recorded before it was changed stays in the old one ([how to move it](privacy.md#when-the-workspace-changes)).",
    }),
  );
}

/** Empty: the services ask each other for no key. */
export function servicesKeySetting(read: SettingsReader): string {
  return read.string("services.key", "", {
    description:
      "The key that the services share. `tapedeck up` creates one. Otherwise it is required if `auth` is `tokens`, or if query or ingest listen beyond loopback.",
  });
}

/** Names that `Host` may have beside loopback. */
export function hostsSetting(read: SettingsReader): readonly string[] {
  return read.list("gateway.hosts", [], {
    description:
      "Host names allowed in the `Host` header, beside loopback; also at the health ports of ingest and query.",
  });
}

/** How much the people of a workspace see of each other's recordings. */
export const developerVisibilities = ["shown", "hidden", "hidden-from-admins"] as const;

/** shown: everybody sees everybody. hidden: only admins do. hidden-from-admins: nobody does. */
export type DeveloperVisibility = (typeof developerVisibilities)[number];

/** The setting that refusals name. */
export const developersSetting = "privacy.developers";

/** The gateway reads it, and query for SQL. */
export function developerVisibility(read: SettingsReader): DeveloperVisibility {
  return read.oneOf(developersSetting, developerVisibilities, "shown", {
    description:
      "`hidden`: everybody but admins sees only the recordings of the own developer, and the sums of the team. `hidden-from-admins`: admins too. It also concerns SQL, and needs `auth: tokens` ([privacy](privacy.md#hidden-developers)).",
  });
}
