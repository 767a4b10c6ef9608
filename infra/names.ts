/** The names of what is published. On npm, `tapedeck` belongs to another project. */
export const npmPackages = {
  cli: "@tapedeck-dev/cli",
  server: "@tapedeck-dev/server",
  client: "@tapedeck-dev/client",
} as const;
