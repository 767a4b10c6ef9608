// For `tapedeck up`, which checks all settings before it starts the services, for the page that lists them, and for
// commands that work on the tables by the settings.
export { querySettings } from "../config.ts";
export { type ReaderLimits, readerLimits } from "../db/access/limits.ts";
