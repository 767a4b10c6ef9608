import { commandsPage } from "./commands-page.ts";
import { kindsPage } from "./kinds-page.ts";
import { settingsPage } from "./page.ts";

/** The pages that `npm run docs` writes, from the repository's root. */
export const pages: Readonly<Record<string, () => string | Promise<string>>> = {
  "docs/commands.md": commandsPage,
  "docs/kinds.md": kindsPage,
  "docs/settings.md": settingsPage,
};
