import {
  type DeveloperVisibility,
  developersSetting,
  developerVisibility,
} from "@tapedeck/shared/service/common-settings";
import type { SettingsReader } from "@tapedeck/shared/service/settings";
import { compareSetting } from "../apis/tapedeck/side-by-side.ts";

/** What people who share a workspace see of each other. */
export type Privacy = {
  readonly developers: DeveloperVisibility;
  /** Whether figures of developers, and their recordings, are put side by side. */
  readonly compareDevelopers: boolean;
};

export type PrivacyContext = {
  readonly auth: "none" | "tokens";
  readonly endpoints: readonly { readonly open?: "viewer" | undefined }[];
};

export function privacySettings(read: SettingsReader, { auth, endpoints }: PrivacyContext): Privacy {
  const developers = developerVisibility(read);
  const compareDevelopers = read.boolean(compareSetting, false, {
    description:
      "Whether developers can be put side by side: statistics grouped by developer or source, and `compare` of the recordings of two developers ([privacy](privacy.md#developers-side-by-side)).",
  });
  if (developers !== "shown") {
    if (auth === "none") {
      read.addError(`${developersSetting}: "${developers}" needs auth: tokens; without tokens nobody is known`);
    }
    for (const [index, { open }] of endpoints.entries()) {
      if (open === undefined) continue;
      read.addError(
        `endpoints.${index}.open: shows a developer's recordings to everybody on this machine, which ${developersSetting}: ${developers} forbids`,
      );
    }
  }
  return { developers, compareDevelopers };
}
