/** Under what names the programs are published. The name `tapedeck` on npm belongs to somebody else. */
export const npmPackages = { cli: "@tapedeck-dev/cli", server: "@tapedeck-dev/server" } as const;
