/** The names under which the programs are published. On npm, `tapedeck` belongs to another project. */
export const npmPackages = { cli: "@tapedeck-dev/cli", server: "@tapedeck-dev/server" } as const;
